"""Gradient checkpointing of a language model's layers, with the same dropout in both of their passes."""

from __future__ import annotations

from functools import wraps
from typing import Any

_LAYERS = 1 << 16  # more than any model has


class Dropout:
    """Random numbers of dropout: the same for a seed, whether activations are kept or computed again."""

    def __init__(self) -> None:
        self._next = 0

    def seed(self, number: int) -> None:
        """Begin anew with the random numbers of ``number``."""
        import mlx.core as mx

        mx.random.seed(number)
        self._next = number * _LAYERS

    def next_seed(self) -> int:
        """Return the seed of the next layer."""
        self._next += 1
        return self._next


def checkpoint_layers(layers: Any, dropout: Dropout) -> None:
    """Compute the activations of these layers again in the backward pass instead of keeping them.

    mlx-vlm's own way draws new random numbers in the second pass, so that the gradient belongs to another dropout.
    """
    for kind in {type(layer) for layer in layers}:
        kind.__call__ = _checkpointed(kind.__call__, dropout)


def _checkpointed(original: Any, dropout: Dropout) -> Any:
    import mlx.core as mx

    @wraps(original)
    def checkpointed(layer: Any, *args: Any, **options: Any) -> Any:
        seed = dropout.next_seed()

        def compute(parameters: Any, *args: Any, **options: Any) -> Any:
            mx.random.seed(seed)
            layer.update(parameters)
            return original(layer, *args, **options)

        return mx.checkpoint(compute)(layer.trainable_parameters(), *args, **options)

    return checkpointed
