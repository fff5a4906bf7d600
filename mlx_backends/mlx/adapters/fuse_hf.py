"""Fusing into Hugging Face's layout: unquantised weights under the names, and in the layout, of the model's original files.

transformers, vLLM and llama.cpp's converter read such folders; so do mlx-vlm and, for the types that it has, mlx-lm.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from mlx_backends.core.error_text import one_line
from mlx_backends.core.library_isolation import contained
from mlx_backends.mlx.adapters.fuse_adapter import FuseOptions, check_fusable, fuse_layers, fuse_record
from mlx_backends.mlx.adapters.fused_folder import write_record, write_settings
from mlx_backends.mlx.adapters.mlx_adapter import apply_adapter
from mlx_backends.mlx.mlx_load import check_supported, load
from mlx_backends.models.adapter_folder import Adapter
from mlx_backends.models.model_discovery import ModelInfo, read_config
from mlx_backends.models.plain_weight_names import by_plain_name
from mlx_backends.models.torch_layer_names import has_channels_last, is_offset_norm, stored_name
from mlx_backends.models.weight_files import weight_files
from mlx_backends.pytorch.torch_weights import is_mlx_format

_EXPERTS = ".switch_mlp."


def fuse_to_hf(model: ModelInfo, adapter: Adapter, target: Path) -> dict[str, Any]:
    """Write ``model`` with ``adapter`` in its weights to the new folder ``target``, in Hugging Face's layout; return its record.

    Weights keep the type of floating-point numbers that they have, or that scales of quantised ones have. A folder in that
    layout keeps its names; those of a folder made for MLX follow from the model's type. Raises ModelError if the adapter is of
    another model, or the names or weights cannot be converted; the caller removes ``target``.
    """
    check_supported(model.path)
    check_fusable(model, adapter)
    record, config = fuse_record(model, adapter, FuseOptions(layout="hf")), read_config(model.path)
    is_mlx = is_mlx_format(model.path, config)
    if not is_mlx and config.get("quantization_config"):
        raise ModelError(f"the weights of {model.name} are quantised, and not by MLX; fuse into the original model.")
    loaded, _ = load(model.path)
    apply_adapter(loaded, adapter, model.name)
    try:
        with contained():
            changed = [*_fuse_and_dequantise(loaded), *(name for name in adapter.shapes if _is_whole(name))]
            weights = _converted(loaded, config) if is_mlx else _replaced(loaded, changed, model)
    except ModelError:
        raise
    except Exception as error:  # a quantisation or a layout unlike any known can raise anything
        raise ModelError(f"{model.name} could not be fused: {one_line(error)}") from error
    with contained():
        _save(weights, target)
    settings = {key: value for key, value in config.items() if key not in ("quantization", "quantization_config")}
    write_settings(model.path, {**_architecture(config), **settings}, target)
    return write_record(model, adapter, record, target)


def _fuse_and_dequantise(model: Any) -> list[str]:
    """Fuse the adapter's layers and dequantise all; return the names of these layers' weights."""
    from mlx_vlm.trainer.peft.utils import dequantize

    layers = [name for name, layer in model.named_modules() if hasattr(layer, "lora_a")]
    fuse_layers(model, FuseOptions(dequantise=True))
    quantised = _quantised(model)
    dequantize(model)
    if left := _quantised(model):
        raise ModelError(f"{left[0]!r} cannot be dequantised; leave --layout hf out.")
    return [f"{name}.weight" for name in dict.fromkeys([*layers, *quantised])]


def _quantised(model: Any) -> list[str]:
    return [name for name, layer in model.named_modules() if hasattr(layer, "bits") and hasattr(layer, "group_size")]


def _is_whole(tensor: str) -> bool:
    """Return whether a tensor of an adapter is a weight of the model, trained in full."""
    return tensor.endswith((".weight", ".bias"))


def _converted(model: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the weights of ``model``, of a folder made for MLX, under the names and in the layout of the original."""
    import mlx.core as mx
    from mlx.utils import tree_flatten

    kind, parameters = config.get("model_type"), dict(tree_flatten(model.parameters()))
    if experts := [name for name in parameters if _EXPERTS in name]:
        raise ModelError(
            f"MLX keeps the experts of a layer apart ({experts[0]!r}), and other programs do not; fuse into the original model, "
            "whose files have their layout."
        )
    weights = {}
    for plain_name, name in by_plain_name(parameters).items():
        value = parameters[name]
        if has_channels_last(name, value.ndim):
            value = mx.moveaxis(value, -1, 1)
        if is_offset_norm(kind, plain_name):
            value = value - 1
        weights[stored_name(kind, name)] = mx.contiguous(value)
    return weights


def _replaced(model: Any, changed: list[str], info: ModelInfo) -> dict[str, Any]:
    """Return the weights in the files of ``info``, with the ``changed`` ones from ``model``."""
    import mlx.core as mx
    from mlx.utils import tree_flatten

    weights: dict[str, Any] = {}
    for file in weight_files(info.path):
        stored: Any = mx.load(str(file))
        weights |= stored
    names, parameters = by_plain_name(weights), dict(tree_flatten(model.parameters()))
    for plain_name, name in by_plain_name(changed).items():
        stored_as = names.get(plain_name)
        if stored_as is None or weights[stored_as].shape != parameters[name].shape:
            raise ModelError(
                f"the files of {info.name} hold {name!r} in another form, into which the adapter cannot be fused; leave "
                "--layout hf out."
            )
        weights[stored_as] = parameters[name]
    return weights


def _save(weights: dict[str, Any], target: Path) -> None:
    import mlx.core as mx
    from mlx_vlm.utils import make_shards

    total, shards = sum(value.nbytes for value in weights.values()), make_shards(weights)
    weights.clear()
    places: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors" if len(shards) > 1 else "model.safetensors"
        mx.save_safetensors(str(target / file), shard, metadata={"format": "pt"})
        places |= dict.fromkeys(shard, file)
        shard.clear()
    if len(shards) > 1:
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}
        (target / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n", "utf-8")


def _architecture(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the name of transformers' class for a model, which vLLM and llama.cpp's converter need; empty for other types."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as KNOWN

    name = KNOWN.get(config.get("model_type"))
    return {"architectures": [name]} if isinstance(name, str) else {}
