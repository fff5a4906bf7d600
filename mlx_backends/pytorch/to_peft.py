"""Conversion of an adapter from mlx-vlm's format to that of peft, whose names are those of the PyTorch model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from mlx_backends.core.isolation import contained
from mlx_backends.models.adapters import PEFT_WEIGHTS, Adapter, lora_pairs
from mlx_backends.models.discovery import ModelInfo, read_config
from mlx_backends.models.peft_format import peft_name, write_peft_config
from mlx_backends.pytorch.adapter import check_plain, torch_layers
from mlx_backends.pytorch.load import check_supported, empty_model


def convert_to_peft(adapter: Adapter, model: ModelInfo, name: str, target: Path) -> None:
    """Write ``adapter`` of ``model`` as peft's to the folder ``target``; ``name`` is where peft finds the model.

    Raises ModelError without PyTorch, and if the adapter is of another model, or not of plain LoRA layers.
    """
    try:
        from safetensors import safe_open
        from safetensors.torch import save_file
    except ImportError as error:
        raise ModelError("PyTorch is not installed; `pip install 'rashomon[torch]'`.") from error
    check_plain(adapter)
    config = read_config(model.path)
    check_supported(model.path, config)
    with contained():
        empty = empty_model(config)
    pairs = lora_pairs(adapter.shapes)
    layers = torch_layers(empty, pairs, adapter, model.name)
    tensors: dict[str, Any] = {}
    with safe_open(adapter.weights, framework="pt") as stored:
        for module, pair in pairs.items():
            key, layer = layers[module]
            first, second = (stored.get_tensor(pair[part]).T.contiguous() for part in "AB")
            if (first.shape[1], second.shape[0]) != (layer.in_features, layer.out_features):
                raise ModelError(
                    f"the adapter {adapter.name} is of another base model than {model.name}; name its own."
                )
            tensors |= {peft_name(key, "A"): first, peft_name(key, "B"): second}
    write_peft_config(target, adapter, name, (key for key, _ in layers.values()))
    save_file(tensors, target / PEFT_WEIGHTS, metadata={"format": "pt"})
