"""Tiny models whose heads are wide enough for a quantised key-value cache, in fp32."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support import tiny_qwen3
from tests.support.fp32 import in_fp32

HEADS: dict[str, Any] = {
    "head_dim": 32,
    "rope_scaling": {"rope_type": "default", "mrope_section": [8, 4, 4], "mrope_interleaved": True},
}


def build_vlm(folder: Path, texts: Iterable[str]) -> Path:
    """A tiny Qwen3-VL with heads of 32 numbers."""
    tiny_qwen3.build_tiny_vlm(folder, texts, quantise=False)
    config = json.loads((folder / "config.json").read_text())
    config["text_config"] |= HEADS
    tiny_qwen3._json(folder / "config.json", config)
    tiny_qwen3._weights(folder, config, seed=0)
    return in_fp32(folder)


def build_lm(folder: Path, texts: Iterable[str]) -> Path:
    """A tiny Qwen3 with heads of 32 numbers."""
    tiny_qwen3.build_tiny_lm(folder, texts, quantise=False)
    config = json.loads((folder / "config.json").read_text())
    config["head_dim"] = HEADS["head_dim"]
    tiny_qwen3._json(folder / "config.json", config)
    tiny_qwen3._text_weights(folder, config, seed=0)
    return in_fp32(folder)
