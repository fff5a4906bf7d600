"""The layers of a language model in a training: those that it changes, their dropout and checkpointing, and dense copies."""

from __future__ import annotations

from functools import wraps
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


def vocabulary_size(model: Any) -> int:
    """Return the number of a model's tokens; a common one where its configuration does not say."""
    text = getattr(model.config, "text_config", model.config)
    size = getattr(text, "vocab_size", None)
    return size if isinstance(size, int) else 1 << 17


_MOST_BYTES = 256 << 20
"""The most memory of all copies: it is part of what the estimate allows for MLX."""


def multiply_densely(model: Any) -> bool:
    """Replace the quantised layers of the language model, also those within an adapter's; return False if they are too large.

    MLX multiplies quantised matrices on a CPU with loops of its own, the dense ones with the system's BLAS, which is faster by
    far if it is an optimised one. The products are the same but for the order of their sums.
    """
    import mlx.nn as nn

    layers = [
        (module, name, layer)
        for _, module in model.language_model.named_modules()
        for name, layer in module.children().items()
        if isinstance(layer, nn.QuantizedLinear)
    ]
    if sum(4 * layer.weight.size * 32 // layer.bits for _, _, layer in layers) > _MOST_BYTES:
        return False
    for module, name, layer in layers:
        setattr(module, name, _dense(layer))
    return True


def _dense(layer: Any) -> Any:
    import mlx.core as mx
    import mlx.nn as nn

    weight = mx.dequantize(
        layer.weight, layer.scales, layer.get("biases"), group_size=layer.group_size, bits=layer.bits, mode=layer.mode
    )
    dense = nn.Linear(weight.shape[1], weight.shape[0], bias="bias" in layer)
    dense.weight = weight
    if "bias" in layer:
        dense.bias = layer.bias
    dense.freeze()
    return dense


_LAYERS = 1 << 16  # more than any model has
_SEEDS = 1 << 64  # of MLX


class Dropout:
    """Random numbers of dropout: the same for a seed, whether activations are kept or computed again."""

    def __init__(self) -> None:
        self._next = 0

    def seed(self, number: int) -> None:
        """Begin anew with the random numbers of ``number``."""
        import mlx.core as mx

        mx.random.seed(number % _SEEDS)
        self._next = number * _LAYERS

    def next_seed(self) -> int:
        """Return the seed of the next layer."""
        self._next += 1
        return self._next % _SEEDS


def prepare_layers(layers: Any, dropout: Dropout, *, checkpointing: bool) -> None:
    """Let each of these layers draw its dropout from a seed of its own.

    With ``checkpointing``, its activations are computed again in the backward pass instead of kept. mlx-vlm's own way draws new
    random numbers then, so that the gradient belongs to another dropout. The layers get a class of their own; other models of the
    process keep theirs.
    """
    classes: dict[type, type] = {}
    for layer in layers:
        kind = type(layer)
        if kind not in classes:
            classes[kind] = type(kind.__name__, (kind,), {"__call__": _prepared(kind.__call__, dropout, checkpointing)})
        layer.__class__ = classes[kind]


def _prepared(original: Any, dropout: Dropout, checkpointing: bool) -> Any:
    import mlx.core as mx

    @wraps(original)
    def prepared(layer: Any, *args: Any, **options: Any) -> Any:
        if not layer.training:  # without dropout and gradients; a cache of keys and values would be no argument for MLX
            return original(layer, *args, **options)
        seed = dropout.next_seed()

        def compute(parameters: Any, *args: Any, **options: Any) -> Any:
            mx.random.seed(seed)
            layer.update(parameters)
            return original(layer, *args, **options)

        compute = mx.checkpoint(compute) if checkpointing else compute
        return compute(layer.trainable_parameters(), *args, **options)

    return prepared
