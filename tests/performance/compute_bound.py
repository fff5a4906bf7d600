"""A random Qwen3-VL of seven million parameters that keeps a CPU busy computing, and the questions it is asked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

from tests.support import tiny_qwen3
from tests.support.fp32 import in_fp32

IMAGE_PIXELS = 640 * 480
VOCABULARY = 6008
"""Without the special tokens: question and passage are then about as long in tokens as for a published model."""


def build(folder: Path, texts: Iterable[str], *, layers: int = 3, pixels: int = IMAGE_PIXELS) -> Path:
    """A Qwen3-VL in fp32, its tokenizer trained on ``texts``: ``pixels`` / 1024 tokens an image; no answer ends by itself."""
    with patch.object(tiny_qwen3, "_TEXT_TOKENS", VOCABULARY):
        tiny_qwen3.build_tiny_vlm(folder, texts, quantise=False)
    config = json.loads((folder / "config.json").read_text())
    ends, config["eos_token_id"] = config["eos_token_id"], [10**6]
    config["dtype"] = "float32"
    config["text_config"] |= {
        "num_hidden_layers": layers,
        "hidden_size": 256,
        "intermediate_size": 1024,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 32,
        "rope_scaling": {"rope_type": "default", "mrope_section": [8, 4, 4], "mrope_interleaved": True},
        "dtype": "float32",
    }
    config["vision_config"] |= {
        "out_hidden_size": 256,
        "hidden_size": 64,
        "num_heads": 2,
        "intermediate_size": 128,
        "depth": 1,
        "deepstack_visual_indexes": [0],
    }
    tiny_qwen3._json(folder / "config.json", config)
    tiny_qwen3._weights(folder, config, seed=0)
    in_fp32(folder, never=ends)  # a CPU computes bf16 many times as slowly
    path = folder / "preprocessor_config.json"
    size = {"shortest_edge": pixels, "longest_edge": pixels * 9 // 8}
    tiny_qwen3._json(path, {**json.loads(path.read_text()), "size": size})
    return folder
