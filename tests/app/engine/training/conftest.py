"""The model of the fast trainings: one of half a million random numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tiny_models import FAMILIES


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Qwen3-VL."""
    return FAMILIES["qwen3_vl"](tmp_path_factory.mktemp("tiny") / "tiny-qwen3-vl")
