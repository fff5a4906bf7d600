"""The workspace's test data, which no training may see."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from app.store.run import RunStore
from app.store.workspace import Workspace
from benchmarks.base import Benchmark
from benchmarks.build import REJECTED_SUFFIX, Build
from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark


def find_test_builds(
    workspace: Workspace, named: Iterable[Path], sources: Collection[str]
) -> list[tuple[Benchmark, Build]]:
    """Return the builds whose instances are test data.

    These are the ``named`` ones, those that a run of the workspace was made from, and those in its folder of builds that are not
    themselves ``sources`` of the training rows, given by their digests. Raises SourceError for a named one that is no build.
    """
    builds = {build.digest: build for build in map(Build.open, named)}
    for place in _run_builds(workspace):
        with suppress(RashomonError):
            build = Build.open(place)
            builds.setdefault(build.digest, build)
    for place in _workspace_builds(workspace):
        with suppress(RashomonError):
            build = Build.open(place)
            if build.digest not in sources:
                builds.setdefault(build.digest, build)
    tests = []
    for build in builds.values():
        with suppress(RashomonError):  # a benchmark of a package that is not installed any more
            tests.append((get_benchmark(build.benchmark), build))
    return tests


def _workspace_builds(workspace: Workspace) -> Iterator[Path]:
    folders = sorted((workspace.path / "benchmarks").glob("*/manifest.json"))
    return (file.parent for file in folders if not file.parent.name.endswith(REJECTED_SUFFIX))


def _run_builds(workspace: Workspace) -> Iterator[Path]:
    seen: set[Path] = set()
    for name in workspace.run_names():
        with (
            suppress(Exception),
            RunStore.read(workspace.runs_folder / name) as store,
        ):  # an unreadable run has no build
            place = workspace.build_of(store)
            if place not in seen:
                seen.add(place)
                yield place
