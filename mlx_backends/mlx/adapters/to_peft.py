"""Conversion of an adapter from mlx-vlm's format to that of peft, whose names are those of transformers' model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from mlx_backends.core.library_isolation import contained
from mlx_backends.models.adapter_folder import PEFT_WEIGHTS, Adapter, check_base, check_plain, lora_pairs
from mlx_backends.models.model_discovery import ModelInfo, read_config
from mlx_backends.models.peft_format import peft_name, write_peft_config
from mlx_backends.models.plain_weight_names import by_plain_name
from mlx_backends.models.torch_layer_names import layer_name
from mlx_backends.models.weight_files import tensor_shapes, weight_files, weights_digest

_ROUTER = ".mlp.gate"


def convert_to_peft(adapter: Adapter, model: ModelInfo, name: str, target: Path) -> None:
    """Write ``adapter`` of ``model`` as peft's to the folder ``target``; ``name`` is where peft finds the model.

    Neither the model nor PyTorch is loaded. Raises ModelError if the adapter is of another model, if it is not of plain LoRA
    layers, and for layers that transformers' model does not have, or whose names are not known.
    """
    import mlx.core as mx

    check_plain(adapter)
    pairs, kind = lora_pairs(adapter.shapes), read_config(model.path).get("model_type")
    _check_layers(adapter, model)
    layers = {module: layer_name(kind, module) for module in pairs}
    with contained():
        stored: Any = mx.load(str(adapter.weights))
    tensors = {}
    for module, pair in pairs.items():
        for part in "AB":
            if not bool(mx.all(mx.isfinite(stored[pair[part]]))):
                raise ModelError(f"the adapter {adapter.name} holds values that are no numbers; use another.")
            tensors[peft_name(layers[module], part)] = mx.contiguous(stored[pair[part]].T)
    write_peft_config(target, adapter, name, layers.values())
    mx.save_safetensors(str(target / PEFT_WEIGHTS), tensors, metadata={"format": "pt"})


def _check_layers(adapter: Adapter, model: ModelInfo) -> None:
    """Raise ModelError unless every layer of ``adapter`` is a linear layer of ``model``, by the model's files."""
    check_base(adapter, model.name, weights_digest(model.path))
    weights = {name: shape for file in weight_files(model.path) for name, shape in tensor_shapes(file).items()}
    stored = by_plain_name(name for name in weights if name.endswith(".weight"))
    pairs = lora_pairs(adapter.shapes)
    for module, pair in pairs.items():
        if module.endswith(_ROUTER) or len(adapter.shapes[pair["A"]]) != 2:
            raise ModelError(
                f"{module!r} of the adapter {adapter.name} chooses or is an expert, which peft does not adapt as a linear layer; "
                "fuse the adapter instead (`rashomon models fuse --layout hf`)."
            )
    for plain_name, weight in by_plain_name(f"{module}.weight" for module in pairs).items():
        module = weight.removesuffix(".weight")
        (inputs, _), (_, outputs) = (adapter.shapes[pairs[module][part]] for part in "AB")
        if plain_name not in stored or not _fits(weights[stored[plain_name]], inputs, outputs):
            raise ModelError(
                f"the adapter {adapter.name} is of another base model than {model.name}, which has no layer {module!r} with "
                f"{inputs} inputs and {outputs} outputs; name the model that it was trained on."
            )


def _fits(shape: tuple[int, ...], inputs: int, outputs: int) -> bool:
    """Return whether a weight of ``shape``, quantised or not, is that of a linear layer with these inputs and outputs."""
    if len(shape) != 2 or shape[0] != outputs:
        return False
    return shape[1] == inputs or any(shape[1] * 32 == inputs * bits for bits in (2, 3, 4, 5, 6, 8))
