"""Type of the numbers that a loaded model computes with."""

from __future__ import annotations

from collections import Counter
from typing import Any


def record_dtype(model: Any) -> None:
    """Record the type of a loaded model's activations in its configuration, from which mlx-vlm drops it."""
    import mlx.core as mx
    from mlx.utils import tree_flatten

    sizes = Counter[Any]()
    for _, value in tree_flatten(getattr(model, "language_model", model).parameters()):
        if mx.issubdtype(value.dtype, mx.floating):  # quantised weights are integers, and their scales of this type
            sizes[value.dtype] += value.size
    if sizes:
        model.config.dtype = str(sizes.most_common(1)[0][0])
