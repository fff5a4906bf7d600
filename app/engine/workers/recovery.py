"""After a worker that died for want of memory: what it had under way is asked again alone, once, and else is an error.

So a request that no machine can answer costs a run two deaths and one error. Nothing is guessed about which of several
requests it was: each of them is a suspect until it has been alone before the model.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from app.engine.workers.in_flight import forget, left_under_way
from app.store.locks import FileLock
from app.store.rows import NewAnswer
from app.store.run import RunStore
from benchmarks.base import Generation
from benchmarks.errors import StoreError

_SUSPECTS = "suspects"
_DEATHS = "deaths"


@dataclass(frozen=True, slots=True)
class WorkerDeath:
    """How a worker ended: ``cause`` in words that follow "the worker", ``at`` in seconds since 1970.

    ``suspects`` are the ids of the instances it had under way, which are asked again alone; ``failed`` the one that was alone
    already, now recorded as an error. ``width`` is how many it had under way at most, None where it never came to ask.
    """

    cause: str
    at: float
    width: int | None = None
    suspects: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def narrower(self) -> int | None:
        """The width for the next worker: half, unless it was one request alone that was too much."""
        return self.width if self.width is None or self.failed else max(1, self.width // 2)

    def sentence(self) -> str:
        """The death and what followed from it, for a person."""
        told = f"the worker {self.cause}"
        if self.failed:
            return f"{told} while it had only {self.failed[0]} to answer, for the second time: recorded as an error"
        if not self.suspects:
            return f"{told} with no answer under way"
        count = len(self.suspects)
        those = f"{count} answers under way, which are" if count > 1 else "one answer under way, which is"
        return f"{told} with {those} asked again alone, then others {self.narrower} at a time"


def want_of_memory(code: int, said: str | None = None) -> str | None:
    """How a worker died that ended with ``code``, if that was for want of memory, else None.

    The kernel kills with SIGKILL, Metal aborts where a command buffer does not fit, and ``said`` is what the worker itself
    reported of an exception. Another signal or exit code is somebody's mistake, which would only be made again.
    """
    if said:
        return f"ran out of memory ({said})"
    if code == -signal.SIGKILL:
        return "was killed by SIGKILL, as the system does where memory runs out,"
    if code == -signal.SIGABRT:
        return "was killed by SIGABRT, as happens where GPU memory runs out,"
    return None


def recover(folders: Sequence[Path], pid: int, cause: str) -> WorkerDeath:
    """Note the death of the worker ``pid`` in the run it was at, and see to what it had under way there.

    Where another process has taken the run meanwhile, or it cannot be written, it is left alone.
    """
    death = WorkerDeath(cause, time.time())
    for folder in folders:
        with suppress(StoreError), FileLock(folder / "lock") as lock:
            if lock.acquire("rashomon"):
                with RunStore.open(folder) as store:
                    state = store.meta("state", {})
                    if state.get("pid") == pid and state.get("state") not in ("done", "failed"):
                        return _noted(store, death)
    return death


def suspects(store: RunStore) -> list[int]:
    """The ordinals of the instances that are asked alone: one of them may be what a worker died of."""
    known: list[int] = store.meta(_SUSPECTS, [])
    return known


def deaths(store: RunStore) -> list[WorkerDeath]:
    """The deaths of a run's workers for want of memory, in order."""
    return [
        WorkerDeath(**{**death, "suspects": tuple(death["suspects"]), "failed": tuple(death["failed"])})
        for death in store.meta(_DEATHS, [])
    ]


def _noted(store: RunStore, death: WorkerDeath) -> WorkerDeath:
    known = suspects(store)
    found = left_under_way(store.folder)
    if found is not None:
        open_ones = {pending.ordinal for pending in store.pending(only=[row[0] for row in found["asked"]])}
        asked = [row for row in found["asked"] if row[0] in open_ones]
        alone = [row for row in asked if row[0] in known]
        death = WorkerDeath(
            death.cause,
            death.at,
            found["width"],
            tuple(row[-1] for row in asked if row not in alone),
            tuple(row[-1] for row in alone),
        )
        if alone:
            store.use_engine(found["engine"])
        error = f"the worker {death.cause.rstrip(',')} while it had nothing but this to answer, for the second time"
        store.commit(
            [
                NewAnswer(
                    ordinal, condition, step, digest, Generation(f"{name}#{step}", "", "error", error=error), True
                )
                for ordinal, condition, step, digest, name in alone
            ]
        )
        store.set_meta(_SUSPECTS, sorted({*known, *(row[0] for row in asked)}))
    store.change_meta(_DEATHS, lambda before: [*(before or []), asdict(death)])
    forget(store.folder)
    return death
