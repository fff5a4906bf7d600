"""Tiny random smolvlm (SmolVLM2), of the layout of idefics3. Its template is written from memory and unverified."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.idefics3 import build as idefics3


def build(folder: Path) -> Path:
    return idefics3(folder, "smolvlm", "smolvlm_vision")
