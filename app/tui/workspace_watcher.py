"""Watching a workspace: a thread looks at the runs four times a second and hands over what it saw, immutable, if it changed."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from app.engine.workers.device_lock import lease_path
from app.store.locks import FileLock
from app.store.throughput import Throughput
from app.store.workspace import RunSummary, Summaries, Workspace

EVERY_SECONDS = 0.25
ACTIVE = ("queued", "loading", "running", "judging", "paused")
"""The states in which a process works on a run."""
RESUMABLE = ("planned", "interrupted", "partial", "failed")
"""The states in which a run can go on and nobody works on it."""


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """A run as it is now. Speeds are of the last minute as this process saw it, None where it saw no progress."""

    folder: Path
    summary: RunSummary
    answers_per_second: float | None = None
    tokens_per_second: float | None = None
    seconds_left: float | None = None

    @property
    def name(self) -> str:
        return self.summary.name

    @property
    def active(self) -> bool:
        """Whether a process works on it."""
        return self.summary.state in ACTIVE

    @property
    def resumable(self) -> bool:
        """Whether it is unfinished and nobody works on it."""
        return self.summary.state in RESUMABLE


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The workspace as it was when it was last looked at: runs, oldest first, and who holds the device."""

    runs: tuple[WatchedRun, ...] = ()
    device: str | None = None
    looked: bool = False
    """False until every run of the workspace has been read once."""
    total: int = 0
    """How many runs there are, of which ``runs`` are those that are read."""
    workspace: Path | None = None

    def run(self, name: str) -> WatchedRun | None:
        """The run of that name."""
        return next((run for run in self.runs if run.name == name), None)


@dataclass(slots=True)
class _Paces:
    answers: Throughput
    tokens: Throughput


@dataclass
class WorkspaceWatcher:
    """Looks at a workspace. :meth:`look` looks once; :meth:`start` looks on in a thread until :meth:`stop`."""

    workspace: Workspace
    clock: Callable[[], float] = time.monotonic
    _summaries: Summaries = field(init=False)
    _paces: dict[str, _Paces] = field(default_factory=dict)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._summaries = Summaries(self.workspace)

    def look(self) -> Snapshot:
        """The workspace as it is now."""
        return deque(self._look(float("inf")), maxlen=1).pop()

    def _look(self, every: float) -> Iterator[Snapshot]:
        """Yield the workspace as far as it is read, every ``every`` seconds, and in the end as a whole."""
        for summaries, total in self._summaries.by_and_by(every):
            runs = tuple(self._now(summary) for summary in summaries)
            queued = any(run.summary.state == "queued" for run in runs)
            device = FileLock(lease_path()).holder() if queued else None
            yield Snapshot(runs, device, len(runs) == total, total, self.workspace.path)

    def _now(self, summary: RunSummary) -> WatchedRun:
        folder = self.workspace.runs_folder / summary.name
        if summary.state not in ("running", "judging"):
            self._paces.pop(summary.name, None)
            return WatchedRun(folder, summary)
        paces = self._paces.setdefault(summary.name, _Paces(Throughput(self.clock), Throughput(self.clock)))
        paces.answers.sample(summary.done)
        paces.tokens.sample(sum(p.tokens for p in summary.progress))
        left = paces.answers.eta(summary.total - summary.done)
        return WatchedRun(folder, summary, paces.answers.per_second, paces.tokens.per_second, left)

    def start(self, tell: Callable[[Snapshot], object]) -> None:
        """Look on in a thread; ``tell`` is called in that thread, with each snapshot that differs from the one before."""
        threading.Thread(target=self._go_on, args=(tell,), name="watch", daemon=True).start()

    def _go_on(self, tell: Callable[[Snapshot], object]) -> None:
        before = None
        while not self._stopped.is_set():
            began = self.clock()
            every = EVERY_SECONDS if before is None or not before.looked else float("inf")
            for now in self._look(every):
                if self._stopped.is_set():
                    return
                if now != before:
                    before = now
                    tell(now)
            # Of thousands of runs each look takes long: most of the time is left to others.
            self._stopped.wait(max(EVERY_SECONDS, 3 * (self.clock() - began)))

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
