"""The workspace's test data, which no training may see, and the comparison of training sets with it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.store.question_sets import SET_FILE, SetVersion, read_set, set_folders
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.base import Benchmark
from benchmarks.build import REJECTED_SUFFIX, Build
from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark
from benchmarks.training.leaks_of_test_data import ImageResult, LeakIndex, LeakReport
from benchmarks.training.training_set import TrainingSet
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.private_folders import cache_folder, make_private
from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes, replace_file
from benchmarks.untrusted.safe_json import MAX_BYTES, OutsideJSONError, parse_json

_MAX_RESULTS = 500_000


@dataclass(frozen=True, slots=True)
class TestData:
    """The builds whose instances are test data, and a sentence on each run or build that could not be read."""

    builds: Sequence[tuple[Benchmark, Build]]
    unread: Sequence[str]


def find_test_builds(workspace: Workspace, named: Iterable[Path], sources: Collection[str]) -> TestData:
    """Return the test data of a workspace.

    These are the ``named`` builds, those that a run of the workspace was made from, those in its folder of builds and every
    version of its question sets, but for the ``sources`` of the training rows, given by their digests, and other versions of
    their sets. Raises SourceError for a named one that is no build.
    """
    builds = {build.digest: build for build in map(Build.open, named)}
    runs, unread = _run_builds(workspace)
    for place, _ in runs:
        with suppress(RashomonError):
            build = Build.open(place)
            builds.setdefault(build.digest, build)
    versions, damaged = _set_versions(workspace)
    own = {*sources}
    for of_set in versions:
        if not own.isdisjoint(version.digest for version in of_set):
            own |= {version.digest for version in of_set}
    places = {version.build: version.digest for of_set in versions for version in of_set if version.digest not in own}
    unread += damaged
    for place in (*_workspace_builds(workspace), *places):
        if places.get(place) in builds:
            continue
        try:
            build = Build.open(place)
        except RashomonError as error:
            unread.append(f"the rows are not compared with {place}: {str(error).rstrip('.')}")
            continue
        if build.digest not in own:
            builds.setdefault(build.digest, build)
    tests = []
    for build in builds.values():
        try:
            tests.append((get_benchmark(build.benchmark), build))
        except RashomonError as error:  # a benchmark of a package that is not installed any more
            unread.append(f"the rows are not compared with {build.path}: {str(error).rstrip('.')}")
    for (place, digest), names in runs.items():
        if digest and digest not in builds:
            reason = (
                "which is the build of the rows" if digest in sources else f"whose build is not in {place} any more"
            )
            unread.append(f"the rows are not compared with the test data of {_first_of(names)}, {reason}")
    return TestData(tests, unread)


def _first_of(names: Sequence[str]) -> str:
    """Return the first of the names of runs, and how many others there are."""
    others = "" if len(names) == 1 else " and another run" if len(names) == 2 else f" and {len(names) - 1} others"
    return f"{names[0]}{others}"


def find_leaks(
    tests: Sequence[tuple[Benchmark, Build]],
    training_set: TrainingSet,
    on_image: Callable[[], None] = lambda: None,
) -> LeakReport:
    """Compare a training set with test data, with a call after each image that was compared.

    Images that were compared with the same test images before are not compared again.
    """
    index = LeakIndex(tests, {build.digest: _name(build.path) for _, build in tests})
    index.image_results.update(_read_results(index.images_digest))
    index.on_image = on_image
    known = len(index.image_results)
    report = index.compare(training_set)
    if len(index.image_results) > known:
        _write_results(index.images_digest, index.image_results)
    return report


def _name(build: Path) -> str:
    """Return the name of a build: SET@NUMBER for a version of a set, its folder's name for another."""
    place = build.resolve()
    return f"{place.parent.name}@{place.name}" if (place.parent / SET_FILE).is_file() else place.name


def _results_file() -> Path:
    return cache_folder() / "training-images.json"


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
        make_private(file.parent)
        content = json.dumps({"tests": images_digest, "images": newest})
        replace_file(file.parent, file.name, content.encode("utf-8"))


def _workspace_builds(workspace: Workspace) -> list[Path]:
    """Return the folders of builds, also where one is a link that leads nowhere; links to versions of sets are left out."""
    entries = []
    with suppress(OSError):
        entries = sorted(folder_entries(workspace.path / "benchmarks"))
    return [
        folder
        for folder in entries
        if not folder.name.startswith(".") and not folder.name.endswith(REJECTED_SUFFIX) and _may_be_build(folder)
    ]


def _may_be_build(folder: Path) -> bool:
    if folder.is_symlink() and (folder.resolve().parent / SET_FILE).is_file():
        return False
    return (folder / "manifest.json").is_file() or (folder.is_symlink() and not folder.exists())


def _set_versions(workspace: Workspace) -> tuple[list[tuple[SetVersion, ...]], list[str]]:
    """Return the versions of each question set, and a sentence on each set that cannot be read."""
    versions, damaged = [], []
    for folder in set_folders(workspace.path):
        try:
            versions.append(read_set(folder).versions)
        except RashomonError as error:
            damaged.append(f"the rows are not compared with the set {folder.name}: {str(error).rstrip('.')}")
    return versions, damaged


def _run_builds(workspace: Workspace) -> tuple[dict[tuple[Path, str], list[str]], list[str]]:
    """Return the runs of a workspace by the folder and the digest of their build, and a sentence on each unreadable one.

    The digest is empty for a run that was not made from a build, such as imported answers.
    """
    runs: defaultdict[tuple[Path, str], list[str]] = defaultdict(list)
    unread = []
    for name in workspace.run_names():
        try:
            with RunStore.read(workspace.runs_folder / name) as store:
                runs[workspace.build_of(store), str(store.meta("identity", {}).get("data digest") or "")].append(name)
        except Exception as error:  # a damaged one can raise anything
            reason = str(error).rstrip(".") if isinstance(error, RashomonError) else "it cannot be read"
            unread.append(f"the rows are not compared with the test data of {name}: {reason}")
    return runs, unread
