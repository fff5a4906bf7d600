"""Dropout and gradient checkpointing of a language model's layers: the same dropout with and without, and in both passes."""

from __future__ import annotations

from functools import wraps
from typing import Any

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
        seed = dropout.next_seed()

        def compute(parameters: Any, *args: Any, **options: Any) -> Any:
            mx.random.seed(seed)
            layer.update(parameters)
            return original(layer, *args, **options)

        compute = mx.checkpoint(compute) if checkpointing else compute
        return compute(layer.trainable_parameters(), *args, **options)

    return prepared
