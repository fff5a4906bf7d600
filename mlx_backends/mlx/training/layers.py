"""The layers of a language model that a training changes."""

from __future__ import annotations

from typing import Any


def language_layers(model: Any) -> Any:
    """Return the layers of a vision-language model's language model."""
    language_model = model.language_model
    layers = getattr(language_model, "layers", None)
    return language_model.model.layers if layers is None else layers


def linear_layers(model: Any) -> list[str]:
    """Return the names of the linear layers in :func:`language_layers`, which an adapter is added to.

    mlx-vlm chooses the same, except that it takes Phi-3 Vision's image encoder for a part of the language model.
    """
    from mlx import nn

    inner = {id(module) for layer in language_layers(model) for module in layer.modules()}
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | nn.QuantizedLinear) and id(module) in inner
    ]
