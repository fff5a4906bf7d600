"""Changes of the weights of a tiny model that random numbers cannot have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def change_weights(folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Apply ``change`` to the weights, by name, of the model in ``folder``, and return the folder."""
    import mlx.core as mx

    file = folder / "model.safetensors"
    weights: Any = mx.load(str(file))
    change(weights)
    mx.save_safetensors(str(file), weights, metadata={"format": "mlx"})
    return folder
