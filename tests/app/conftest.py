"""CMC-Bench from drawn charts, built once, in a workspace of each test's own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.charts import draw_sources
from tests.support.command import Rashomon


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("built")
    draw_sources(home / "sources")
    Rashomon(home).run("build", "cmc-bench", "--source", home / "sources")
    return home / "workspace" / "benchmarks"


@pytest.fixture
def rashomon(built: Path, tmp_path: Path) -> Rashomon:
    shutil.copytree(built, tmp_path / "workspace" / "benchmarks")
    return Rashomon(tmp_path)
