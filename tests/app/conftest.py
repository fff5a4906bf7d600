"""Fixtures for the tests of the application."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.store.workspace import Workspace
from tests.support.demo import HeldOutSet


@pytest.fixture
def workspace(charts: HeldOutSet, tmp_path: Path) -> Workspace:
    """A workspace with CMC-Bench built from the demo's held-out charts."""
    result = Workspace(tmp_path / "workspace")
    result.build_folder("cmc-bench").parent.mkdir(parents=True)
    result.build_folder("cmc-bench").symlink_to(charts.build.path)
    return result
