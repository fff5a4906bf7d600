"""Record of a worker's work on a run: its answers, the time they took, and what sharing saved."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from app.store.run_facts import WORK_KEY
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from benchmarks.errors import RashomonError
from benchmarks.untrusted.safe_files import read_bytes, replace_file
from mlx_backends.base import Backend
from mlx_backends.core.saved_work import NO_WORK, SEEN_BYTES, Seen

_NAME = "prompts.seen"
"""The file of the prompts that a run has read, so that a worker that resumes it counts none of them as new."""

_LEAST_SECONDS = 1.0
_COST_FACTOR = 50
"""The time between two stored records, as a multiple of what storing one takes."""


class WorkRecord:
    """Record of one worker's work on a run, stored with its answers at most once a second.

    A killed worker loses the counts of the last moments, not those before. ``clock`` returns seconds.
    """

    def __init__(self, store: RunStore, backend: Backend, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._backend = backend
        self._clock = clock
        self._earlier: list[Mapping[str, Any]] = store.meta(WORK_KEY, [])
        self._before = read_seen(store.folder)
        self._answered = 0
        self._seconds = 0.0
        self._lap_began = clock()
        self._next = clock()

    def lap(self) -> float:
        """Return the seconds since the last lap."""
        began, self._lap_began = self._lap_began, self._clock()
        return self._lap_began - began

    def add_time(self) -> None:
        """Count the time since the last lap for answers that are committed later."""
        self._seconds += self.lap()

    def commit(self, answers: Sequence[NewAnswer]) -> None:
        """Commit answers that took the time since the last lap, and now and then the record with them."""
        self._answered += sum(map(_is_generated, answers))
        self._seconds += self.lap()
        if self._clock() < self._next:
            self._store.commit(answers)
            return
        began = self._clock()
        self._store.commit(answers, {WORK_KEY: self._entries()})
        self._next = self._clock() + max(_LEAST_SECONDS, _COST_FACTOR * (self._clock() - began))

    def save(self) -> None:
        """Store the record as the work ends."""
        if self._answered:
            self._store.set_meta(WORK_KEY, self._entries())

    def _entries(self) -> list[Mapping[str, Any]]:
        """Return the records of earlier workers and this one's, whose distinct tokens and images are new to the run."""
        times = {"answered": self._answered, "seconds": round(self._seconds, 3)}
        reuse = self._backend.reuse
        if reuse is None or not reuse.prompts:
            return [*self._earlier, {**NO_WORK, **times}]
        seen, before = reuse.seen, {"tokens": 0, "images": 0}
        if self._before is not None:
            seen = seen.merged(self._before)
            before = self._before.counts()
        with suppress(OSError, RashomonError):  # such as a full disk: then the next worker counts anew
            replace_file(self._store.folder, _NAME, seen.to_bytes())
        new = {f"distinct_{name}": count - before[name] for name, count in seen.counts().items()}
        continues = self._before is not None or not any(entry["prompts"] for entry in self._earlier)
        return [*self._earlier, {**reuse.sums(), **new, **times, "continues": continues}]


def read_seen(folder: Path) -> Seen | None:
    """Return the prompts that a run's workers have read; None where that is not known."""
    try:
        return Seen.from_bytes(read_bytes(folder, _NAME, limit=SEEN_BYTES))
    except (OSError, ValueError, RashomonError):
        return None


def _is_generated(answer: NewAnswer) -> bool:
    return answer.generation.calls > 0 and answer.generation.finish_reason != "error"
