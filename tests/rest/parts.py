"""Parts of the slow tests: equal in time, at least ten, and in each the tests nearest to the latest changes first."""

from __future__ import annotations

import math
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path, PurePosixPath

LEAST_PARTS = 10
MOST_SECONDS = 720.0
"""Seconds of the tests of a part, which two processes share: half of the limit on a machine as fast as the recorded one."""
CHUNK_SECONDS = 120.0
"""Seconds of consecutive tests of one file that stay in one part, where they share what their fixtures build."""
NEAR_SECONDS = 300.0
"""Seconds of the tests of other parts that a part begins with, because they are near to what was changed."""
UNKNOWN_SECONDS = 10.0
"""Seconds of a test of a file that has not been recorded."""

SECONDS = Path(__file__).with_name("seconds.txt")
"""Mean seconds of a slow test, file by file."""


def recorded_seconds(file: Path = SECONDS) -> dict[str, float]:
    """Return the recorded mean seconds of a test, by file."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return {name: float(seconds) for seconds, name in (line.split(maxsplit=1) for line in lines)}


def record_seconds(measured: Mapping[str, float], present: Iterable[str], file: Path = SECONDS) -> None:
    """Write the measured mean seconds over the recorded ones; files that are not ``present`` any more are left out."""
    seconds = {**recorded_seconds(file), **measured}
    lines = [f"{seconds[name]:8.2f} {name}\n" for name in sorted(seconds.keys() & set(present))]
    file.write_text("".join(lines), "utf-8")


def split_into_parts(tests: Sequence[str], seconds: Mapping[str, float]) -> list[list[str]]:
    """Return the node ids ``tests`` in parts of about equal time, each in the given order.

    A part that would take more than :data:`MOST_SECONDS` is split: then there are more than ten.
    """

    def of_test(test: str) -> float:
        return seconds.get(file_of(test), UNKNOWN_SECONDS)

    chunks: list[tuple[float, list[str]]] = []
    for file, group in groupby(tests, file_of):
        of_file = list(group)
        size = max(1, int(CHUNK_SECONDS / max(seconds.get(file, UNKNOWN_SECONDS), 0.01)))
        pieces = math.ceil(len(of_file) / size)
        for piece in range(pieces):
            chunk = of_file[piece * len(of_file) // pieces : (piece + 1) * len(of_file) // pieces]
            chunks.append((sum(map(of_test, chunk)), chunk))
    count = max(LEAST_PARTS, math.ceil(sum(total for total, _ in chunks) / MOST_SECONDS))
    parts: list[list[str]] = [[] for _ in range(count)]
    totals = [0.0] * count
    for total, chunk in sorted(chunks, key=lambda pair: -pair[0]):  # the longest first, to the part with the least
        least = totals.index(min(totals))
        parts[least] += chunk
        totals[least] += total
    order = {test: place for place, test in enumerate(tests)}
    return [sorted(part, key=order.__getitem__) for part in parts]


def select_turn(tests: Sequence[str], turn: int, seconds: Mapping[str, float], changed: Iterable[str]) -> list[str]:
    """Return the tests of part ``turn``, counted round, and those of other parts that are nearest to the ``changed`` files.

    The nearest files come first.
    """
    parts = split_into_parts(tests, seconds)
    part = parts[turn % len(parts)]
    files = dict.fromkeys(map(file_of, tests))
    nearness = nearness_of(files, changed)
    selected = set(part)
    left = NEAR_SECONDS
    for test in sorted(tests, key=lambda test: -nearness[file_of(test)]):
        spent = seconds.get(file_of(test), UNKNOWN_SECONDS)
        if test not in selected and nearness[file_of(test)] and spent <= left:
            selected.add(test)
            left -= spent
    return sorted((test for test in tests if test in selected), key=lambda test: -nearness[file_of(test)])


def nearness_of(files: Iterable[str], changed: Iterable[str]) -> dict[str, int]:
    """Return for each test file how much of its path it shares with a ``changed`` file; 0 without a common sub-folder.

    Tests mirror the packages: ``tests/app/store/test_run_store.py`` shares three names with ``app/store/run_store.py``.
    """
    prefixes: dict[tuple[str, ...], int] = defaultdict(int)
    for name in changed:
        parts = _mirrored(name)
        for length in range(2, len(parts) + 1):
            prefixes[parts[:length]] = length
    scores = {}
    for name in files:
        parts = _mirrored(name)
        scores[name] = max((prefixes.get(parts[:length], 0) for length in range(2, len(parts) + 1)), default=0)
    return scores


def changed_files(root: Path, since: str = "1 day ago") -> list[str]:
    """Return the files that the commits ``since`` then have changed; none without git."""
    command = ["git", "log", f"--since={since}", "--name-only", "--format="]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return sorted({line for line in done.stdout.splitlines() if line.endswith(".py")})


def file_of(test: str) -> str:
    """Return the file of a node id."""
    return test.partition("::")[0]


def _mirrored(name: str) -> tuple[str, ...]:
    parts = PurePosixPath(name).with_suffix("").parts
    parts = parts[1:] if parts[0] == "tests" else parts
    return (*parts[:-1], parts[-1].removeprefix("test_"))
