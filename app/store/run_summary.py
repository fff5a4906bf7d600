"""Summaries of runs: what is stored of a run, and its current state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.store.file_locks import KILLED, FileLock
from app.store.run_facts import is_judged
from app.store.run_store import RunStore
from app.store.run_titles import read_title
from app.store.sqlite_errors import typed_run
from app.store.store_types import CELLS_KEY, NODES_KEY, ConditionProgress, NodeStatus
from benchmarks.errors import RashomonError, StoreError
from judges.base import newest_versions

PAUSE_FILE = "pause"
"""The file in a run's folder that pauses its worker while it exists."""
SUPERVISOR_FILE = "supervisor"
"""The lock file in a run's folder of the process that starts the run's worker; its text is :func:`worker_text`."""
ACTIVE_STATES = ("queued", "loading", "running", "judging")
"""The states that a worker records while it works on a run."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Summary of a run, as in ``rashomon runs``; ``problem`` is the reason why it could not be read, if so."""

    name: str
    state: str
    spec: dict[str, Any]
    progress: tuple[ConditionProgress, ...]
    note: str = ""
    created: float | None = None
    problem: str | None = None
    own: bool = True
    """Flag for a run made on this machine; any other is read-only."""
    quantisation: str = ""
    """The quantisation that the engine reported; empty for a model without local weights."""
    title: str = ""
    """The name that the user gave the run, to be displayed in place of its folder's."""
    cells: int = 1
    """The number of cells of a varied build in which each example is repeated."""
    nodes: tuple[NodeStatus, ...] = ()
    """The nodes of the cluster that answers, or answered last."""
    worker: int | None = None
    """The process id of the worker that recorded the state."""
    source: str = ""
    """The data source of its first instance."""
    newest_verdict: int = 0
    """The id of its newest verdict."""
    cut_reasoning: int = 0
    """The number of judged answers that ended at the limit of tokens within their reasoning."""

    @property
    def done(self) -> int:
        return sum(p.done for p in self.progress)

    @property
    def total(self) -> int:
        return sum(p.total for p in self.progress)

    @property
    def errors(self) -> int:
        """The number of answers that are errors."""
        return sum(p.errors for p in self.progress)

    @property
    def failed_judgements(self) -> int:
        """The number of judgements that failed, of each judge's newest version."""
        ids = {judge for p in self.progress for judge in p.judged}
        judges = newest_versions(ids)
        return sum(judged.failed for p in self.progress for judge, judged in p.judged.items() if judge in judges)

    @property
    def reused(self) -> int:
        """The number of answers that are another run's."""
        return sum(p.reused for p in self.progress)


def oldest_first(runs: Iterable[RunSummary]) -> list[RunSummary]:
    """Return runs by when they were planned."""
    return sorted(runs, key=lambda run: (run.created or 0, run.name))


def read_summary(folder: Path) -> RunSummary:
    """Return the summary of the run in ``folder``; an error becomes its ``problem``."""
    return current_summary(folder, stored_summary(folder))


def _own(store: RunStore) -> bool:
    """Return whether a run was made on this machine; False if the machine has no key."""
    try:
        return store.own
    except StoreError:
        return False


def stored_summary(folder: Path) -> RunSummary:
    """Return the summary from the database alone, with the state that the worker recorded last."""
    try:
        with RunStore.read(folder) as store:
            recorded = store.meta("state", {})
            progress, spec = tuple(store.progress()), store.meta("spec")
            state, note = recorded.get("state", "planned"), recorded.get("note", "")
            created = store.meta("created", 0.0) or None
            quantisation = str(store.meta("identity", {}).get("quantisation") or "")
            title, cells = read_title(folder), store.meta(CELLS_KEY, 1)
            nodes = tuple(NodeStatus(**node) for node in store.meta(NODES_KEY, []))
            source, newest_verdict = store.ends()
            # While a run goes on, its summary is read several times a second, and Live names these answers.
            is_cut = state != "running" and any(p.truncated for p in progress)
            return RunSummary(
                folder.name,
                state,
                spec,
                progress,
                note,
                created,
                own=_own(store),
                quantisation=quantisation,
                title=title,
                cells=cells if type(cells) is int else 1,
                nodes=nodes,
                worker=recorded.get("pid"),
                source=source,
                newest_verdict=newest_verdict,
                cut_reasoning=store.cut_reasoning() if is_cut else 0,
            )
    except Exception as error:  # one damaged run, possibly from elsewhere, must not hide the others
        return _unreadable(folder, error)


def current_summary(folder: Path, stored: RunSummary) -> RunSummary:
    """Return the stored summary with the run's current state."""
    if stored.problem is not None:
        return stored
    try:
        state = run_state(folder, stored)
        if state == "interrupted" != stored.state:  # or its worker ended, or another began, since that was read
            stored = stored_summary(folder)
            state = run_state(folder, stored)
    except Exception as error:
        return _unreadable(folder, error)
    note = "" if state == "done" or (state == "planned" != stored.state) else stored.note
    if state == "interrupted" != stored.state:
        note = f"{KILLED}; every answer reported done is safe"
    return replace(stored, state=state, note=note)


def _unreadable(folder: Path, error: Exception) -> RunSummary:
    problem = str(error)
    if not isinstance(error, RashomonError):
        problem = f"it cannot be read ({type(error).__name__}: {error}); run `rashomon doctor {typed_run(folder)}` for details."
    return RunSummary(folder.name, "unreadable", {}, (), problem=problem)


def run_state(folder: Path, stored: RunSummary) -> str:
    """Return a run's current state: the one that its worker recorded, unless that worker is gone or another is about to start.

    A run is done once it is answered and judged by its own judges, even if another judge was interrupted later.
    """
    recorded = stored.state
    alive = FileLock(folder / "lock").holder() is not None
    complete = stored.done == stored.total
    if complete and not alive and recorded != "planned" and is_judged(stored.spec, stored.progress):
        return "done"
    if not alive and supervised_worker(folder) not in (None, worker_text(stored.worker)):
        return "planned"
    if recorded in ACTIVE_STATES and not alive:
        return "interrupted"
    if recorded in ("running", "judging") and (folder / PAUSE_FILE).exists():
        return "paused"
    return "partial" if recorded == "done" and not complete else recorded


def supervised_worker(folder: Path) -> str | None:
    """Return the :func:`worker_text` of the process that starts a run's worker; None if there is no such process."""
    return FileLock(folder / SUPERVISOR_FILE).holder()


def worker_text(pid: int | None) -> str:
    """Return the text for the worker that a supervisor has started for a run; None for no worker yet."""
    return "no worker yet" if pid is None else f"worker {pid}"
