"""Watcher of a workspace: a thread that polls the runs four times a second and reports immutable snapshots of changes."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from app.engine.workers.device_lock import device_lock_path
from app.report.progress.answers_under_conflict import Acts, ConflictActs
from app.report.progress.remaining_time import Throughput
from app.store.file_locks import FileLock
from app.store.run_summary import ACTIVE_STATES, RunSummary
from app.store.summary_cache import Summaries
from app.store.workspace import Workspace

POLL_SECONDS = 0.25
RESUMABLE_STATES = ("planned", "interrupted", "partial", "stopped", "failed")
"""The states of an unfinished run on which no process works."""


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """A run's current state. Speeds are those this process observed in the last minute; None without progress."""

    folder: Path
    summary: RunSummary
    answers_per_second: float | None = None
    tokens_per_second: float | None = None
    seconds_left: float | None = None
    acts: Acts | None = None
    """The acts of its answers under conflict, if its data are the user's own."""

    @property
    def name(self) -> str:
        return self.summary.name

    @property
    def active(self) -> bool:
        """True if a process works on the run."""
        return self.summary.state in (*ACTIVE_STATES, "paused")

    @property
    def resumable(self) -> bool:
        """True if the run is unfinished and no process works on it."""
        return self.summary.state in RESUMABLE_STATES


@dataclass(frozen=True, slots=True)
class WorkspaceSnapshot:
    """A workspace at its last reading: the runs, oldest first, and the holder of the device."""

    runs: tuple[WatchedRun, ...] = ()
    device: str | None = None
    complete: bool = False
    """True once every run of the workspace has been read."""
    total: int = 0
    """The number of runs in the workspace; ``runs`` holds those read so far."""
    workspace: Path | None = None

    def run(self, name: str) -> WatchedRun | None:
        """Return the run of that name, or None."""
        return next((run for run in self.runs if run.name == name), None)


@dataclass(slots=True)
class _Speeds:
    answers: Throughput
    tokens: Throughput


@dataclass
class WorkspaceWatcher:
    """Reader of a workspace: once with :meth:`read`, or repeatedly in a thread from :meth:`start` to :meth:`stop`."""

    workspace: Workspace
    clock: Callable[[], float] = time.monotonic
    _summaries: Summaries = field(init=False)
    _speeds: dict[str, _Speeds] = field(default_factory=dict)
    _acts: dict[tuple[str, float | None], ConflictActs] = field(default_factory=dict)
    """The readers of acts by name and time of creation."""
    _stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._summaries = Summaries(self.workspace)

    def read(self) -> WorkspaceSnapshot:
        """Return the current state of the workspace."""
        return deque(self._read(float("inf")), maxlen=1).pop()

    def _read(self, first: float) -> Iterator[WorkspaceSnapshot]:
        """Yield partial snapshots while reading, the first after ``first`` seconds, and finally the complete one."""
        for summaries, total in self._summaries.read_incrementally(first):
            runs = tuple(self._watched(summary) for summary in summaries)
            queued = any(run.summary.state == "queued" for run in runs)
            device = FileLock(device_lock_path()).holder() if queued else None
            yield WorkspaceSnapshot(runs, device, len(runs) == total, total, self.workspace.path)

    def _watched(self, summary: RunSummary) -> WatchedRun:
        folder = self.workspace.runs_folder / summary.name
        key = summary.name, summary.created
        if key not in self._acts:
            self._acts[key] = ConflictActs(folder)
        acts = None if summary.problem else self._acts[key].read(summary)
        if summary.state not in ("running", "judging"):
            self._speeds.pop(summary.name, None)
            return WatchedRun(folder, summary, acts=acts)
        speeds = self._speeds.setdefault(summary.name, _Speeds(Throughput(self.clock), Throughput(self.clock)))
        speeds.answers.sample(summary.done - summary.reused)
        speeds.tokens.sample(sum(p.tokens for p in summary.progress))
        seconds_left = speeds.answers.eta(summary.total - summary.done) if summary.state == "running" else None
        rates = speeds.answers.per_second, speeds.tokens.per_second
        return WatchedRun(folder, summary, *rates, seconds_left, acts)

    def start(self, report: Callable[[WorkspaceSnapshot], object]) -> None:
        """Start the thread; it calls ``report`` with each snapshot that differs from the previous one."""
        threading.Thread(target=self._poll, args=(report,), name="watch", daemon=True).start()

    def _poll(self, report: Callable[[WorkspaceSnapshot], object]) -> None:
        previous = None
        while not self._stopped.is_set():
            started = self.clock()
            first = POLL_SECONDS if previous is None or not previous.complete else float("inf")
            for snapshot in self._read(first):
                if self._stopped.is_set():
                    return
                if snapshot != previous:
                    previous = snapshot
                    report(snapshot)
            # Reading thousands of runs takes long; this leaves most of the time to other threads.
            self._stopped.wait(max(POLL_SECONDS, 5 * (self.clock() - started)))

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()
