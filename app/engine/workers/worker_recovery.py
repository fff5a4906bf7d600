"""Recovery from a worker that ran out of memory or lost the GPU.

The instances it had in flight become suspects. Each suspect is asked once more, on its own; if that kills the worker too, the
instance is recorded as an error. A request that no machine can answer therefore costs a run two deaths and one error, and
nothing is guessed about which request of several was at fault.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from app.engine.requests_in_flight import read_leftover, remove_leftover
from app.engine.workers.worker_process import Outcome
from app.store.file_locks import FileLock
from app.store.run_facts import DEATHS_KEY, WorkerDeath, death_to_json
from app.store.run_store import RunStore
from app.store.run_summary import ACTIVE_STATES
from app.store.store_types import NewAnswer
from benchmarks.errors import StoreError
from benchmarks.vocabulary import Generation

_SUSPECTS = "suspects"


def restartable_cause(code: int, outcome: Outcome | None = None) -> str | None:
    """Return the cause of death of a worker that a new one may survive, from its exit ``code`` and report; else None.

    The kernel kills with SIGKILL where memory runs out, and a library that cannot report a failure of the GPU aborts. Any other
    signal, exit code or exception is a fault that a restart would only repeat.
    """
    if outcome is not None:
        return outcome.death or None
    if code == -signal.SIGKILL:
        return "was killed by SIGKILL, as the system does where memory runs out,"
    if code == -signal.SIGABRT:
        return "was killed by SIGABRT, as happens where GPU memory runs out,"
    return None


def recover(folders: Sequence[Path], pid: int, cause: str, *, memory: bool = True) -> WorkerDeath:
    """Record the death of the worker ``pid`` in the run it was working on, and mark what it had in flight.

    ``memory`` is whether it died because memory ran out, so that the next one gets fewer requests.

    A run that another process has taken over meanwhile, or that cannot be written, is left as it is.
    """
    death = WorkerDeath(cause, time.time(), memory=memory)
    with suppress(StoreError):
        for store in _left_by(folders, pid):
            return _record_death(store, death)
    return death


def record_stop(folders: Sequence[Path], pid: int) -> None:
    """Record that the runs on which the worker ``pid`` was working were interrupted, which it had no time to do itself."""
    with suppress(StoreError):
        for store in _left_by(folders, pid):
            store.set_meta("state", {"state": "interrupted", "note": "", "pid": pid})


def _left_by(folders: Sequence[Path], pid: int) -> Iterator[RunStore]:
    """Yield the runs on which the worker ``pid`` was working when it ended."""
    for folder in folders:
        with suppress(StoreError), FileLock(folder / "lock") as lock:
            if lock.acquire("rashomon"):
                with RunStore.open(folder) as store:
                    state = store.meta("state", {})
                    if state.get("pid") == pid and state.get("state") in ACTIVE_STATES:
                        yield store


def suspects(store: RunStore) -> list[int]:
    """Return the ordinals of the instances that are asked on their own, because one of them may have killed a worker."""
    ordinals: list[int] = store.meta(_SUSPECTS, [])
    return ordinals


def _record_death(store: RunStore, death: WorkerDeath) -> WorkerDeath:
    known = suspects(store)
    leftover = read_leftover(store.folder)
    if leftover is not None:
        pending = {instance.ordinal for instance in store.pending(only=[row[0] for row in leftover["asked"]])}
        rows = [row for row in leftover["asked"] if row[0] in pending]
        failed = [row for row in rows if row[0] in known]
        death = WorkerDeath(
            death.cause,
            death.at,
            leftover["width"],
            tuple(row[-1] for row in rows if row not in failed),
            tuple(row[-1] for row in failed),
            death.memory,
        )
        if failed:
            store.use_engine(leftover["engine"])
        error = f"the worker {death.cause.rstrip(',')} while it had nothing but this to answer, for the second time"
        store.commit(
            [
                NewAnswer(
                    ordinal, condition, step, digest, Generation(f"{name}#{step}", "", "error", error=error), True
                )
                for ordinal, condition, step, digest, name in failed
            ]
        )
        store.set_meta(_SUSPECTS, sorted({*known, *(row[0] for row in rows)}))
    store.change_meta(DEATHS_KEY, lambda before: [*(before or []), death_to_json(death)])
    remove_leftover(store.folder)
    return death
