"""Tiny random minicpmv4_7 (MiniCPM-V 4.7): minicpmv4_6 whose slices have positions on a canvas. Its template is unverified."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tiny_models.base import write_model
from tests.support.tiny_models.minicpmv4_6 import build as minicpmv4_6


def build(folder: Path) -> Path:
    config = json.loads((minicpmv4_6(folder) / "config.json").read_text())
    processor = json.loads((folder / "preprocessor_config.json").read_text())
    tokens = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    ids = {token["content"]: token["id"] for token in tokens}
    config |= {
        "architectures": ["MiniCPMV4_7ForConditionalGeneration"],
        "model_type": "minicpmv4_7",
        "mrope_mode": "canvas",
        "image_start_id": ids["<image>"],
        "image_end_id": ids["</image>"],
        "slice_start_id": ids["<slice>"],
        "slice_end_id": ids["</slice>"],
    }
    processor |= {"image_processor_type": "MiniCPMV4_6ImageProcessor", "processor_class": "MiniCPMV4_7Processor"}
    return write_model(folder, config, processor)
