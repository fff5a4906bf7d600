"""Models that compute in fp32, in which answers together can be compared with answers alone token for token."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def in_fp32(folder: Path, never: Sequence[int] = ()) -> Path:
    """Write a tiny model's weights over in fp32; quantised ones stay as they are, with scales in fp32.

    ``never``: tokens that it does not say, since their logits are zero; for a model whose output layer is its own.
    """
    import mlx.core as mx

    path = folder / "model.safetensors"
    tensors: Any = mx.load(str(path))
    weights = {
        name: value.astype(mx.float32) if mx.issubdtype(value.dtype, mx.floating) else value
        for name, value in tensors.items()
    }
    if never:
        weights["lm_head.weight"][mx.array(list(never))] = 0
    mx.eval(list(weights.values()))  # they are read from the file that is written over
    mx.save_safetensors(str(path), weights, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    for part in (config, config.get("text_config", {})):
        part["dtype"] = "float32"
    (folder / "config.json").write_text(json.dumps(config))
    return folder
