"""Events of ``--display json``: JSON Lines about the progress of runs, of which the last is the outcome."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from app.json_output.json_envelope import FORMAT, plain
from app.json_output.json_only_output import print_own
from app.report.runs.portable_facts import portable_message
from app.store.run_summary import read_summary
from app.store.sqlite_errors import DamagedError
from app.store.store_types import ConditionProgress, NodeStatus


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedData:
    """The data of a paper's setup."""

    state: Literal["built", "fetched", "shipped", "begun", "none", "unavailable"]
    """``shipped`` comes with Rashomon and is to be built; ``begun`` is partly fetched; ``none`` is to be fetched."""
    description: str
    folder: str
    known_bytes: int
    """The bytes to fetch, as far as known without a server."""
    unknown_size: str
    """A phrase on the rest; empty if there is none."""
    origin: str
    licences: tuple[str, ...]
    missing: tuple[str, ...]
    """Data that cannot be had, and are done without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedModel:
    """A model of a paper's setup. ``bytes`` and ``licence`` are null if only the Hub knows them."""

    name: str
    to_fetch: bool
    bytes: int | None
    licence: str | None
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSetupRun:
    """A run of a paper's setup: its calls by condition, and its answers, as far as they are left. ``seconds`` may be unknown."""

    model: str
    prompt_set: str
    calls: Mapping[str, int]
    at_most: bool
    answers: int
    seconds: float | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEvent:
    """The plan of a paper's setup, made without a network. It can be carried out if ``problems`` is empty."""

    event: Literal["plan"] = "plan"
    setup: str
    data: PlannedData
    models: tuple[PlannedModel, ...]
    models_left_out: Mapping[str, str]
    conditions_left_out: Mapping[str, str]
    judges: tuple[str, ...]
    runs: tuple[PlannedSetupRun, ...]
    counted: str
    """The basis of the numbers of calls."""
    costs: tuple[str, ...]
    not_ready: tuple[str, ...]
    problems: tuple[str, ...]


Event = ProgressEvent | PlanEvent | OutcomeEvent


@dataclass(slots=True)
class Outcome:
    """Outcome of a command, printed at its end; there is one for each process, as it has one standard output."""

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
        damage = error if isinstance(error, DamagedError) else None
        runs = tuple(self._run_outcome(folder, damage) for folder in self.folders)
        text = self.portable(message or self.message or _sentence(runs))
        print_own(event_line(OutcomeEvent(exit_code=exit_code, runs=runs, message=text)), flush=True)

    def portable(self, text: str, spec: Mapping[str, Any] | None = None) -> str:
        """Return a message without the folders of this machine, or of a run's ``spec``."""
        return portable_message(text, self.workspace or Path.home(), spec)

    def _run_outcome(self, folder: Path, damage: DamagedError | None) -> RunOutcome:
        run = read_summary(folder)
        problem = run.problem or (str(damage) if damage is not None and damage.folder == folder else None)
        return RunOutcome(
            name=run.name,
            state=run.state,
            done=run.done,
            total=run.total,
            errors=run.errors,
            failed_judgements=run.failed_judgements,
            problem=None if problem is None else self.portable(problem),
        )


outcome = Outcome()


def event_line(event: Event) -> str:
    """Return an event as a line."""
    return json.dumps(plain(event))


def _sentence(runs: Sequence[RunOutcome]) -> str:
    return "; ".join(f"{run.name}: {run.done} of {run.total} answered" for run in runs) or "nothing was to do"
