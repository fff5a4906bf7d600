"""JSON of training: the training set, the trainings, and the learning curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.json_output.tables import TableJson


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTrainingSet:
    """A new training set. ``leaks`` are the rows that are test data, by means; ``test_builds`` the digests compared with."""

    folder: str
    digest: str
    manifest: dict[str, Any]
    leaks: dict[str, int]
    warnings: tuple[str, ...]
    test_builds: tuple[str, ...]
    test_images: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRate:
    """A learning rate that was tried, with its validation loss; None if it diverged."""

    learning_rate: float
    loss: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEntry:
    """A training. Times are in seconds, ``created`` since 1970, memory in bytes; folders are relative to the workspace.

    Attributes:
        base_loss: The base's loss of the validation rows.
        rates: The learning rates that were tried, with their validation losses.
        learning_rate: The given learning rate, or the one that the search chose; None before it has.
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
