"""Events of ``--display json``: JSON Lines about the progress of runs, of which the last is the outcome."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from app.json_output.envelope import FORMAT, plain
from app.report.portable import portable_message
from app.store.data_types import ConditionProgress, NodeStatus
from app.store.sqlite_errors import DamagedError
from app.store.workspace import RunSummary, read_summary
from judges.base import newest


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressEvent:
    """The state of a run. Speed and time left are null until they are known."""

    event: Literal["progress"] = "progress"
    run: str
    state: str
    note: str
    done: int
    total: int
    reused: int
    """The answers that are another run's."""
    answers_per_second: float | None
    seconds_left: float | None
    conditions: tuple[ConditionProgress, ...]
    nodes: tuple[NodeStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """A run at the end of a command, with the numbers of its answers that are errors, and that a judge failed on."""

    name: str
    state: str
    done: int
    total: int
    errors: int
    failed_judgements: int
    problem: str | None
    """The reason why it could not be read, and its numbers are then 0; or the damage of an answer or a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeEvent:
    """The end of a command, the last line: its exit code, its runs, and a sentence on what happened or is wrong."""

    format: int = FORMAT
    event: Literal["outcome"] = "outcome"
    exit_code: int
    runs: tuple[RunOutcome, ...]
    message: str


Event = ProgressEvent | OutcomeEvent


@dataclass(slots=True)
class Outcome:
    """What a command has to say at its end; there is one for each process, as it has one standard output."""

    workspace: Path | None = None
    folders: dict[Path, None] = field(default_factory=dict)
    message: str = ""
    """A sentence on what was done, if it is not how many answers its runs have."""

    def begin(self, workspace: Path) -> None:
        """Forget an earlier command of this process; messages will name paths relative to ``workspace``."""
        self.workspace, self.folders, self.message = workspace, {}, ""

    def about(self, folders: Iterable[Path]) -> None:
        """Add the folders of runs."""
        self.folders.update(dict.fromkeys(folders))

    def print(self, exit_code: int, message: str = "", error: BaseException | None = None) -> None:
        """Print the outcome of a command that ``error`` has ended, unless that is None."""
        workspace = self.workspace or Path.home()
        summaries = [read_summary(folder) for folder in self.folders]
        if isinstance(error, DamagedError):
            summaries = [
                replace(run, problem=run.problem or str(error)) if folder == error.folder else run
                for folder, run in zip(self.folders, summaries, strict=True)
            ]
        runs = tuple(_run_outcome(run, workspace) for run in summaries)
        text = portable_message(message or self.message or _sentence(runs), workspace)
        event = OutcomeEvent(exit_code=exit_code, runs=runs, message=text)
        print(event_line(event), flush=True)


outcome = Outcome()


def event_line(event: Event) -> str:
    """Return an event as a line."""
    return json.dumps(plain(event))


def failed_judgements(run: RunSummary) -> int:
    """Return the number of judgements that failed in a run, of each judge's newest version."""
    ids = {judge for p in run.progress for judge in p.judged}
    judges = {newest(judge.rpartition("@")[0], ids) or judge for judge in ids}
    return sum(judged.failed for p in run.progress for judge, judged in p.judged.items() if judge in judges)


def _run_outcome(run: RunSummary, workspace: Path) -> RunOutcome:
    return RunOutcome(
        name=run.name,
        state=run.state,
        done=run.done,
        total=run.total,
        errors=sum(condition.errors for condition in run.progress),
        failed_judgements=failed_judgements(run),
        problem=None if run.problem is None else portable_message(run.problem, workspace),
    )


def _sentence(runs: Sequence[RunOutcome]) -> str:
    return "; ".join(f"{run.name}: {run.done} of {run.total} answered" for run in runs) or "nothing was to do"
