"""JSON of training: the training set, the trainings, and the learning curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.json_output.tables_json import TableJson


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakedRow:
    """A row of a training set with test data: the row of the table that it comes from, the means, and the test."""

    row: str
    source: str
    means: str
    test: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTrainingSet:
    """A new training set; ``folder``, ``digest`` and ``manifest`` are null if it was refused.

    ``leaks`` are the numbers of rows that are or resemble test data, by means; ``test_builds`` the digests compared with.
    """

    folder: str | None
    digest: str | None
    manifest: dict[str, Any] | None
    leaks: dict[str, int]
    leaked_rows: tuple[LeakedRow, ...]
    warnings: tuple[str, ...]
    test_builds: tuple[str, ...]
    test_images: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRate:
    """A learning rate that was tried, with its validation loss; None if it diverged."""

    learning_rate: float
    loss: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCheck:
    """The answers that the model generated for some validation rows after update ``step``; 0 is the base.

    Attributes:
        names: True if the answers to learn name conflicts; otherwise they give a value in spite of them.
        conflicts: The rows whose sources conflict.
        named: Of those, the answers that do what their rows teach.
        agreeing: The rows without a conflict.
        kept: Of those, the right answers.
        outcomes: The number of answers by kind of row and outcome.
        seconds: The time that it took.
    """

    step: int
    names: bool
    conflicts: int
    named: int
    agreeing: int
    kept: int
    outcomes: dict[str, dict[str, int]]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEntry:
    """A training. Times are in seconds, ``created`` since 1970, memory in bytes; folders are relative to the workspace.

    Attributes:
        base_loss: The base's loss of the validation rows.
        rates: The learning rates that were tried, with their validation losses.
        learning_rate: The given learning rate, or the one that the search chose; None before it has.
        checks: The checks of generated answers along the training.
        verdict: The sentence on whether to use its best adapter; None before the end.
        exit_code: The verdict's exit code: 0 to use it, 5 not to, 6 where nothing can be told.
    """

    name: str
    state: str
    note: str
    model: str | None
    data: str
    """The name of the training set's folder."""
    recipe: str | None
    step: int
    steps: int
    loss: float | None
    validation_loss: float | None
    best_step: int | None
    best_loss: float | None
    base_loss: float | None
    learning_rate: float | None
    rates: tuple[TriedRate, ...]
    checks: tuple[AnswerCheck, ...]
    verdict: str | None
    exit_code: int | None
    seconds: float
    peak_memory: int
    adapter: str | None
    best: str | None
    created: float


TrainingList = tuple[TrainingEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningCurvePlan:
    """A training that a learning curve needs, on ``rows`` rows of a data set."""

    training: str
    data: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningCurveJson:
    """A learning curve: its trainings, and what it shows. With ``--dry-run`` there is no table."""

    trainings: tuple[LearningCurvePlan, ...]
    sentences: tuple[str, ...]
    table: TableJson | None
