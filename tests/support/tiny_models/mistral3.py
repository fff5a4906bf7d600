"""Tiny random mistral3 (Mistral Small 3.1), of the layout of pixtral. Its template is unverified too."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.pixtral import build as pixtral


def build(folder: Path) -> Path:
    """Four patches become one token."""
    return pixtral(folder, "mistral3", 2)
