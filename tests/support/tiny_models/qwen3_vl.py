"""Tiny random qwen3_vl: :mod:`tests.support.tiny_qwen3` in fp32."""

from __future__ import annotations

from pathlib import Path

from tests.support.fp32 import in_fp32
from tests.support.tiny_models.base import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm


def build(folder: Path) -> Path:
    return in_fp32(build_tiny_vlm(folder, TEXTS, quantise=False))
