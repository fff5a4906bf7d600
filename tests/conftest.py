"""Fixtures for all tests, and the held-out sets of the demo model, built once a session."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

os.environ["MLX_DISABLE_COMPILE"] = "1"  # before MLX is imported: compiling costs seconds and changes nothing
# What this machine has made and agreed to, for all processes of a session; the user's own is neither read nor written.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="rashomon-tests-")
os.environ["XDG_CACHE_HOME"] = f"{os.environ['XDG_STATE_HOME']}/cache"
os.environ["RASHOMON_VISION_CACHE"] = "0"  # tests break encoders of the same weights; those of the cache set it
os.environ["TEXTUAL_ANIMATIONS"] = "none"  # before Textual is: a screen that moves has no one text

import pytest
from hypothesis import HealthCheck, settings

from tests.support.blank_figures import blank_figures
from tests.support.charts import SHARED, draw_sources
from tests.support.command import Rashomon
from tests.support.demo import HeldOutSet
from tests.support.json_contract import RECORD

# How long an example takes says something of the machine, nothing of what is tested.
settings.register_profile("any machine", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def _no_state_of_this_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a Mac, tests do not depend on its memory's use nor on its Metal."""
    monkeypatch.setattr("app.new_run.mac_warnings.load_warnings", list)
    monkeypatch.setattr("mlx_backends.models.memory_and_cache_sizes.metal_working_set", lambda: None)


@pytest.fixture(scope="session")
def charts(tmp_path_factory: pytest.TempPathFactory) -> HeldOutSet:
    """Charts with passages: CMC-Bench."""
    return HeldOutSet("cmc-bench", tmp_path_factory.mktemp("charts"))


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> HeldOutSet:
    """Scenes with captions: CLASH."""
    return HeldOutSet("clash", tmp_path_factory.mktemp("scenes"))


@pytest.fixture(scope="session")
def logos(tmp_path_factory: pytest.TempPathFactory) -> HeldOutSet:
    """Logos with up to two pieces of evidence: MMKC-Bench."""
    return HeldOutSet("mmkc-bench", tmp_path_factory.mktemp("logos"))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CMC-Bench from drawn charts: the folder of builds."""
    home = tmp_path_factory.mktemp("built")
    draw_sources(home / "sources")
    Rashomon(home).run("build", "cmc-bench", "--source", home / "sources")
    return home / "workspace" / "benchmarks"


@pytest.fixture
def rashomon(built: Path, tmp_path: Path) -> Rashomon:
    """The command line, in a workspace of the test's own that holds :func:`built`."""
    shutil.copytree(built, tmp_path / "workspace" / "benchmarks")
    return Rashomon(tmp_path)


@pytest.fixture(scope="module")
def without_figures() -> Iterator[None]:
    """All figures that this module's tests save in this process are empty."""
    with blank_figures():
        yield


FIRST_PROCESS = "PYTEST_XDIST_WORKER" not in os.environ
MEMORY, MOST_BYTES = Path("/dev/shm"), 4 * 2**30
"""Linux's folder in memory, and the room that it must have for all that tests write."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep what tests write in memory where that is possible: each answer is synced, and a disk takes its time for that."""
    if os.access(MEMORY, os.W_OK):
        status = os.statvfs(MEMORY)
        runs_programs = not status.f_flag & os.ST_NOEXEC
        if runs_programs and status.f_bavail * status.f_frsize >= MOST_BYTES:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    if config.getoption("--record-columns"):
        os.environ[RECORD] = "1"
    if FIRST_PROCESS:  # the others inherit the folder
        os.environ[SHARED] = tempfile.mkdtemp(prefix="rashomon-shared-")


LONGEST_FIRST = ("end_to_end", "assets", "mlx_backends", "tui", "app")
"""Folders whose files take longest: `make test` begins with them, so that no process ends long after the others."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest, and leave tests of PyTorch to the rest, which is run where it is installed."""
    tests, has_torch = Path(__file__).parent, find_spec("torch") is not None
    for item in items:
        if item.get_closest_marker("torch"):
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.skipif(not has_torch, reason="PyTorch is not installed (rashomon[torch])"))

    def place(item: pytest.Item) -> int:
        folder = item.path.relative_to(tests).parts[0]
        return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)

    items.sort(key=place)


def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what collecting made out of garbage collections: a million objects, a third of a second each time."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)
    if FIRST_PROCESS:
        shutil.rmtree(os.environ[SHARED], ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--snapshot-update", action="store_true", help="Write the snapshots of screens anew.")
    parser.addoption("--record-columns", action="store_true", help="Record the tables' columns in docs/schemas.")
