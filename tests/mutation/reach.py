"""Tests that reach a line, by the recorded coverage."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import cache
from itertools import accumulate
from pathlib import Path

import coverage

from tests.rest.parts import file_of, nearness_of

_PHASE = re.compile(r" \((?:setup|call|teardown)\)$")


class Reach:
    """The tests that ran each line, and the CPU seconds of each test."""

    def __init__(self, data: coverage.CoverageData, root: Path, tests: Iterable[dict[str, object]]) -> None:
        self._data = data
        self._root = root
        self._seconds: dict[str, float] = {}
        self._with_fixture: dict[str, set[str]] = defaultdict(set)
        for line in tests:
            self._seconds[str(line["test"])] = float(str(line["seconds"]))
            for fixture in line["fixtures"] if isinstance(line["fixtures"], list) else ():
                self._with_fixture[fixture].add(str(line["test"]))
        self._lines_of = cache(self._data.contexts_by_lineno)

    @classmethod
    def read(cls, folder: Path, root: Path) -> Reach:
        """Read what was recorded in ``folder``."""
        data = coverage.CoverageData(str(folder / "coverage"))
        parts = [str(part) for part in folder.glob("coverage.*") if not part.name.endswith("-journal")]
        if parts:
            combined = coverage.Coverage(data_file=str(folder / "coverage"))
            combined.combine(parts)
        data.read()
        lines = (
            line for file in sorted((folder / "cpu").glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()
        )
        return cls(data, root, map(json.loads, lines))

    def tests(self, file: str, line: int) -> set[str]:
        """Return the tests that ran a line, or that need a shared fixture that ran it."""
        tests: set[str] = set()
        for context in self._lines_of(str(self._root / file)).get(line, ()):
            for name in map(_without_phase, context.split("|")):
                tests |= self._with_fixture[name.removeprefix("fixture ")] if name.startswith("fixture ") else {name}
        return tests - {""}

    def seconds(self, test: str) -> float:
        """Return the CPU seconds of a test."""
        return self._seconds.get(test, 1.0)

    def nearest(self, file: str, line: int, among: Collection[str], most_seconds: float) -> list[str]:
        """Return the tests ``among`` these that reach a line, nearest files and quickest tests first, in ``most_seconds``."""
        reaching = self.tests(file, line) & set(among)
        nearness = nearness_of({file_of(test) for test in reaching}, [file])
        ordered = sorted(reaching, key=lambda test: (-nearness[file_of(test)], self.seconds(test), test))
        totals = accumulate(map(self.seconds, ordered))
        selected = [test for test, total in zip(ordered, totals, strict=True) if total <= most_seconds] or ordered[:1]
        files = {file: place for place, file in enumerate(dict.fromkeys(map(file_of, selected)))}
        return sorted(selected, key=lambda test: files[file_of(test)])  # what a file's tests share is made once


def _without_phase(context: str) -> str:
    return _PHASE.sub("", context)
