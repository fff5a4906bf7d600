"""Times of what is measured, and their medians and ranges."""

from __future__ import annotations

import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from tests.support.command import ROOT

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return the result of ``work`` and its seconds."""
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def process_output(command: Sequence[str | Path], environment: Mapping[str, str]) -> str:
    """Return what a process prints, from its start to its end."""
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def count_answers(database: Path) -> int:
    """Return the number of answers that a run in another process has committed."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM generation").fetchone()[0])
    return 0


def spread(values: Sequence[float], unit: str = "") -> str:
    """Return the median of measurements, with their range if there are several."""
    middle = f"{statistics.median(values):.2f}{unit}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.2f} to {max(values):.2f})"


def rotated(items: Sequence[T], number: int) -> list[T]:
    """Return ``items`` in the order of round ``number``: each comes first in turn, since a machine's speed drifts."""
    start = number % len(items)
    return [*items[start:], *items[:start]]


def whole_numbers(defaults: Sequence[int]) -> list[int]:
    """Return the numbers on the command line; those that are missing come from ``defaults``."""
    given = [int(word) for word in sys.argv[1:]]
    return [*given, *defaults[len(given) :]]
