"""The held-out sets of the demo model, built once."""

from __future__ import annotations

import os

os.environ["MLX_DISABLE_COMPILE"] = "1"  # before MLX is imported: compiling costs seconds and changes nothing

import pytest

from tests.support.demo import Held


@pytest.fixture(scope="session")
def charts(tmp_path_factory: pytest.TempPathFactory) -> Held:
    """Charts with passages: CMC-Bench."""
    return Held("cmc-bench", tmp_path_factory.mktemp("charts"))


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Held:
    """Scenes with captions: CLASH."""
    return Held("clash", tmp_path_factory.mktemp("scenes"))


@pytest.fixture(scope="session")
def logos(tmp_path_factory: pytest.TempPathFactory) -> Held:
    """Logos with up to two pieces of evidence: MMKC-Bench."""
    return Held("mmkc-bench", tmp_path_factory.mktemp("logos"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--snapshot-update", action="store_true", help="Write the snapshots of screens anew.")
