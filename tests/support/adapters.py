"""Adapters for tiny models, made with mlx-vlm's own layers and saved by its own function."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def make_adapter(
    model: Path,
    folder: Path,
    *,
    rank: int = 4,
    seed: int = 0,
    strength: float = 0.5,
    targets: Sequence[str] | None = None,
    dora: bool = False,
    base: dict[str, Any] | None = None,
) -> Path:
    """Write an adapter that changes what ``model`` answers, as a training would; ``base`` is recorded in training.json."""
    import mlx.core as mx
    from mlx.utils import tree_flatten, tree_unflatten
    from mlx_vlm.trainer.peft import get_peft_model, save_adapter

    from mlx_backends.mlx.mlx_load import load

    loaded, _ = load(model)
    get_peft_model(loaded, targets, rank=rank, alpha=2.0 * rank, dropout=0.1, verbose=False, use_dora=dora)
    key = mx.random.key(seed)
    values = []
    for name, value in tree_flatten(loaded.trainable_parameters()):
        key, part = mx.random.split(key)
        changed = mx.random.normal(value.shape, key=part) * strength / value.shape[0] ** 0.5
        values.append((name, changed if name.endswith(("lora_a", "lora_b")) else value))
    loaded.update(tree_unflatten(values))
    save_adapter(loaded, folder / "adapters.safetensors")
    if base is not None:
        (folder / "training.json").write_text(json.dumps(base))
    return folder


def linear_names(model: Path, part: str) -> list[str]:
    """Return the names of the linear layers of ``model`` whose name contains ``part``."""
    import mlx.nn as nn

    from mlx_backends.mlx.mlx_load import load

    loaded, _ = load(model)
    return [name for name, layer in loaded.named_modules() if part in name and isinstance(layer, nn.Linear)]


def edit_config(folder: Path, **changes: Any) -> Path:
    """Change the low-rank parameters in an adapter's configuration."""
    path = folder / "adapter_config.json"
    config = json.loads(path.read_text())
    config["lora_parameters"] |= changes
    path.write_text(json.dumps(config))
    return folder
