"""The workspace's test data, which no training may see, and the comparison of training sets with it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from app.store.run import RunStore
from app.store.workspace import Workspace
from benchmarks.base import Benchmark
from benchmarks.build import REJECTED_SUFFIX, Build
from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark
from benchmarks.training.leaks import ImageResult, LeakIndex, LeakReport
from benchmarks.training.training_set import TrainingSet
from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes, replace_file
from benchmarks.untrusted.safe_json import MAX_BYTES, OutsideJSONError, parse_json

_MAX_RESULTS = 500_000


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


def find_leaks(tests: Sequence[tuple[Benchmark, Build]], training_set: TrainingSet) -> LeakReport:
    """Compare a training set with test data; images that were compared with the same test images before are not again."""
    index = LeakIndex(tests)
    index.image_results.update(_read_results(index.images_digest))
    known = len(index.image_results)
    report = index.compare(training_set)
    if len(index.image_results) > known:
        _write_results(index.images_digest, index.image_results)
    return report


def _results_file() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("rashomon") / "training-images.json"


def _read_results(images_digest: str) -> dict[str, ImageResult]:
    """Return the stored results of images; none if the file is missing, damaged or of other test images."""
    file = _results_file()
    try:
        stored = parse_json(read_bytes(file.parent, file.name, limit=MAX_BYTES))
    except (OSError, OutsideJSONError, UnsafeFileError):
        return {}
    results: dict[str, ImageResult] = {}
    match stored:
        case {"tests": tests, "images": dict(images)} if tests == images_digest:
            for name, result in images.items():
                match result:
                    case None:
                        results[name] = None
                    case [int(number), bool(same)] if number >= 0:
                        results[name] = number, same
    return results


def _write_results(images_digest: str, results: Mapping[str, ImageResult]) -> None:
    """Store the newest results of images for these test images, in place of those for others."""
    file = _results_file()
    newest = dict(list(results.items())[-_MAX_RESULTS:])
    with suppress(OSError, UnsafeFileError):  # the images are compared again
        file.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps({"tests": images_digest, "images": newest})
        replace_file(file.parent, file.name, content.encode("utf-8"))


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
