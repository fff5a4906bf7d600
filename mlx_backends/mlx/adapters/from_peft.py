"""Conversion of an adapter from peft's format to that of mlx-vlm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from mlx_backends.core.library_isolation import contained
from mlx_backends.mlx.mlx_load import check_supported, load
from mlx_backends.models.adapter_folder import WEIGHTS
from mlx_backends.models.model_discovery import ModelInfo
from mlx_backends.models.peft_format import read_peft, write_mlx_config
from mlx_backends.models.plain_weight_names import by_plain_name


def convert_from_peft(source: Path, model: ModelInfo, target: Path) -> None:
    """Write peft's adapter in ``source``, of ``model``, as mlx-vlm's to the folder ``target``.

    Raises ModelError if it is of another model.
    """
    import mlx.core as mx
    import mlx.nn as nn

    adapter = read_peft(source)
    check_supported(model.path)
    loaded, _ = load(model.path)
    modules = by_plain_name(
        f"{name}.weight" for name, layer in loaded.named_modules() if isinstance(layer, nn.Linear | nn.QuantizedLinear)
    )
    with contained():
        stored: Any = mx.load(str(adapter.weights))
    tensors, keys = {}, []
    for plain_name, layer in by_plain_name(f"{layer}.weight" for layer in adapter.pairs).items():
        if plain_name not in modules:
            raise ModelError(
                f"the adapter {source.name} is of another base model than {model.name}, which has no layer like "
                f"{layer.removesuffix('.weight')!r}; name the model that it was trained on."
            )
        key, pair = modules[plain_name].removesuffix(".weight"), adapter.pairs[layer.removesuffix(".weight")]
        keys.append(key)
        tensors[f"{key}.lora_a"] = mx.contiguous(stored[pair["A"]].T)
        tensors[f"{key}.lora_b"] = mx.contiguous(stored[pair["B"]].T)
    write_mlx_config(target, adapter, keys)
    mx.save_safetensors(str(target / WEIGHTS), tensors)
