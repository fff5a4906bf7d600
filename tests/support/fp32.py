"""Models that compute in fp32, in which answers together can be compared with answers alone token for token."""

from __future__ import annotations

import json
from pathlib import Path


def in_fp32(folder: Path) -> Path:
    """Write a tiny model's weights over in fp32; quantised ones stay as they are, with scales in fp32."""
    import mlx.core as mx

    path = folder / "model.safetensors"
    weights = {
        name: value.astype(mx.float32) if mx.issubdtype(value.dtype, mx.floating) else value
        for name, value in mx.load(str(path)).items()
    }
    mx.eval(list(weights.values()))  # they are read from the file that is written over
    mx.save_safetensors(str(path), weights, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    for part in (config, config.get("text_config", {})):
        part["dtype"] = "float32"
    (folder / "config.json").write_text(json.dumps(config))
    return folder
