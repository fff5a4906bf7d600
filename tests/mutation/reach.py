"""Record of the tests that reach each fault: its place reports to a file which test was running.

The same file is the pytest plugin that names shared fixtures as such and keeps each test's CPU seconds and outcome.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.faults import Fault
from tests.rest.parts import file_of, nearness_of

FOLDER = "RASHOMON_REACH"
"""Environment variable: the folder for what is recorded."""

REPORTER = "reached_by_tests"
_REPORTER = '''"""A fault's place says which test reached it, whose name child processes inherit."""
import os
_known = set()
def reached(number):
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    if (number, test) not in _known:
        _known.add((number, test))
        try:
            with open(os.path.join({folder!r}, f"{{os.getpid()}}.reached"), "a", encoding="utf-8") as stream:
                stream.write(f"{{number}} {{test}}\\n")
        except OSError:
            pass
'''
_PHASE = re.compile(r" \((?:setup|call|teardown)\)$")
_FIXTURE = "fixture "
_failed: set[str] = set()


def add_reports(tree: Path, faults: Collection[Fault], folder: Path) -> None:
    """Make every fault's place in ``tree`` report to ``folder``; what the code does stays as it is."""
    (tree / f"{REPORTER}.py").write_text(_REPORTER.format(folder=str(folder)), "utf-8")
    by_file: dict[str, list[tuple[int, Fault]]] = defaultdict(list)
    for number, fault in enumerate(faults):
        by_file[fault.file].append((number, fault))
    for file, numbered in by_file.items():
        path = tree / file
        path.write_bytes(with_reports(path.read_bytes(), numbered))


def with_reports(source: bytes, numbered: Iterable[tuple[int, Fault]]) -> bytes:
    """Return the source with a report at every fault's place, on the same lines."""
    inserted: list[tuple[int, int, bytes]] = []
    for number, fault in numbered:
        report = f'__import__("{REPORTER}").reached({number})'.encode()
        if fault.text.startswith("("):
            inserted += [(fault.start, 1, b"(" + report + b" or ("), (fault.end, 0, b"))")]
        else:  # a statement
            inserted.append((fault.start, 1, report + b"; "))
    # From the end, so that earlier places stay; what ends at a place comes before what begins there.
    for place, _, text in sorted(inserted, key=lambda item: item[:2], reverse=True):
        source = source[:place] + text + source[place:]
    return source


class Reach:
    """The tests that reached each fault, and the CPU seconds of each test; of those that passed."""

    def __init__(self, folder: Path) -> None:
        self._seconds: dict[str, float] = {}
        with_fixture: dict[str, set[str]] = defaultdict(set)
        for line in _lines(folder, "*.tests"):
            test = json.loads(line)
            if not test["failed"]:
                self._seconds[test["test"]] = test["seconds"]
                for fixture in test["fixtures"]:
                    with_fixture[fixture].add(test["test"])
        self._tests: dict[int, set[str]] = defaultdict(set)
        for line in _lines(folder, "*.reached"):
            number, _, context = line.partition(" ")
            name = _PHASE.sub("", context)
            of_name = with_fixture[name.removeprefix(_FIXTURE)] if name.startswith(_FIXTURE) else {name}
            self._tests[int(number)] |= of_name & self._seconds.keys()

    def tests(self, number: int) -> set[str]:
        """Return the tests that reached a fault, or that need a shared fixture that did."""
        return self._tests[number]

    def seconds(self, test: str) -> float:
        """Return the CPU seconds of a test."""
        return self._seconds[test]

    def nearest(self, number: int, file: str, among: Collection[str], most_seconds: float) -> list[str]:
        """Return the tests ``among`` these that reach a fault, nearest files and quickest tests first, in ``most_seconds``."""
        reaching = self.tests(number) & set(among)
        nearness = nearness_of({file_of(test) for test in reaching}, [file])
        ordered = sorted(reaching, key=lambda test: (-nearness[file_of(test)], self.seconds(test), test))
        totals = accumulate(map(self.seconds, ordered))
        selected = [test for test, total in zip(ordered, totals, strict=True) if total <= most_seconds] or ordered[:1]
        files = {file: place for place, file in enumerate(dict.fromkeys(map(file_of, selected)))}
        return sorted(selected, key=lambda test: files[file_of(test)])  # what a file's tests share is made once


def _lines(folder: Path, pattern: str) -> Iterable[str]:
    for file in sorted(folder.glob(pattern)):
        yield from file.read_text("utf-8").splitlines()


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    before = _cpu_seconds()
    try:
        return (yield)
    finally:
        test = {
            "test": item.nodeid,
            "seconds": round(_cpu_seconds() - before, 3),
            "failed": item.nodeid in _failed,
            "fixtures": _shared_fixtures(item),
        }
        with (Path(os.environ[FOLDER]) / f"{os.getpid()}.tests").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(test) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        _failed.add(item.nodeid)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """Attribute what a shared fixture reaches to the fixture: whichever test needs it first does not own it."""
    test = os.environ.get("PYTEST_CURRENT_TEST")
    if fixturedef.scope == "function" or test is None:
        return (yield)
    os.environ["PYTEST_CURRENT_TEST"] = _FIXTURE + fixturedef.argname
    try:
        return (yield)
    finally:
        os.environ["PYTEST_CURRENT_TEST"] = test


def _shared_fixtures(item: pytest.Item) -> list[str]:
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.items() if info else ()
    return sorted({name for name, of_name in definitions if of_name[-1].scope != "function"})
