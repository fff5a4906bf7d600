"""Cache of the summaries of a workspace's runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from app.store.run_database import DATABASE
from app.store.run_summary import RunSummary, current_summary, oldest_first, stored_summary
from app.store.run_titles import TITLE_FILE
from app.store.workspace import Workspace


class Summaries:
    """Cache of the summaries of a workspace's runs: a database is read again only once it has changed."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[str, tuple[Stamp, RunSummary]] = {}

    def read_incrementally(self, first: float = float("inf")) -> Iterator[tuple[list[RunSummary], int]]:
        """Yield the runs read so far with the number of all runs, and finally all runs.

        The newest runs are read first. The first yield comes after ``first`` seconds, each further one after twice the time of
        the one before: what the caller does with thousands of runs takes no more than a share of the time.
        """
        stored: dict[str, tuple[Stamp, RunSummary]] = {}
        current: list[RunSummary] = []
        stamps = {name: run_stamp(self._workspace.runs_folder / name) for name in self._workspace.run_names()}
        began, wait = time.monotonic(), first
        for name in sorted(stamps, key=lambda name: _changed(stamps[name]), reverse=True):
            cached = self._known.get(name)
            folder = self._workspace.runs_folder / name
            if cached is None or cached[0] != stamps[name]:
                cached = stamps[name], stored_summary(folder)
            stored[name] = cached
            current.append(current_summary(folder, cached[1]))
            if time.monotonic() - began > wait and len(current) < len(stamps):
                yield oldest_first(current), len(stamps)
                wait *= 2
        self._known = stored
        yield oldest_first(current), len(stamps)


Stamp = tuple[object, ...]
"""The value of :func:`run_stamp`."""
_CLOCK_TICK_NS = 2 * 10**9


def run_stamp(folder: Path) -> Stamp:
    """Return a stamp that differs once a run's database has changed.

    Two changes within a clock tick leave the same file time, so a file that changed just now counts as changed each time.
    """
    stats: list[tuple[int, ...] | None] = []
    for name in (DATABASE, f"{DATABASE}-wal", TITLE_FILE):
        try:
            stat = (folder / name).stat()
        except OSError:
            stats.append(None)
            continue
        fresh = time.time_ns() - stat.st_mtime_ns < _CLOCK_TICK_NS
        stats.append((stat.st_ino, stat.st_size, stat.st_mtime_ns, time.monotonic_ns() if fresh else 0))
    return tuple(stats)


def _changed(stamp: Stamp) -> int:
    """Return the time of a run's last change, by its stamp."""
    return max((part[2] for part in stamp if isinstance(part, tuple)), default=0)
