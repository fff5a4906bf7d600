"""Adapters in a loaded PyTorch model: the low-rank layers that MLX trained, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.errors import ModelError
from mlx_backends.models.adapter_folder import Adapter, check_plain, lora_pairs
from mlx_backends.models.plain_weight_names import by_plain_name


def apply_adapter(model: Any, adapter: Adapter, name: str) -> None:
    """Add what ``adapter`` computes to the layers of the loaded ``model``, whose name is ``name``.

    Raises ModelError if it is of another model, or of a kind that only MLX applies.
    """
    import torch
    from safetensors import safe_open

    check_plain(adapter)
    pairs = lora_pairs(adapter.shapes)
    layers = torch_layers(model, pairs, adapter, name)
    with safe_open(adapter.weights, framework="pt") as tensors:
        for module, pair in pairs.items():
            first, second = (tensors.get_tensor(pair[part]) for part in "AB")
            layer = layers[module][1]
            shapes = (layer.in_features, adapter.rank), (adapter.rank, layer.out_features)
            if (tuple(first.shape), tuple(second.shape)) != shapes:
                raise ModelError(
                    f"the adapter {adapter.name} is of another base model than {name}: {pair['A']!r} does not have the "
                    "shape of its layer; name the model that it was trained on."
                )
            if not (torch.isfinite(first).all() and torch.isfinite(second).all()):
                raise ModelError(f"the adapter {adapter.name} holds values that are no numbers; use another.")
            _add(layer, first.to(layer.weight.device), second.to(layer.weight.device), adapter.scale)


def torch_layers(model: Any, modules: Mapping[str, Any], adapter: Adapter, name: str) -> dict[str, tuple[str, Any]]:
    """Return PyTorch's name and layer for each of MLX's ``modules``. Raises ModelError where there is none."""
    import torch

    linear = {key: layer for key, layer in model.named_modules() if isinstance(layer, torch.nn.Linear)}
    names = by_plain_name(f"{key}.weight" for key in linear)
    layers = {}
    for plain_name, module in by_plain_name(f"{key}.weight" for key in modules).items():
        if plain_name not in names:
            raise ModelError(
                f"{module.removesuffix('.weight')!r} of the adapter {adapter.name} has no counterpart in the PyTorch model "
                f"of {name}; name the model that it was trained on, or run it with MLX."
            )
        key = names[plain_name].removesuffix(".weight")
        layers[module.removesuffix(".weight")] = key, linear[key]
    return layers


def _add(layer: Any, first: Any, second: Any, scale: float) -> None:
    """Add the low-rank product to the output of ``layer``, with the roundings of mlx-vlm's layer."""

    def adapted(_: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        (x,) = inputs
        dtype = first.dtype if first.dtype == second.dtype else x.dtype
        return output + (scale * ((x.to(dtype) @ first) @ second)).to(x.dtype)

    layer.register_forward_hook(adapted)
