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
class TrainingEntry:
    """A training. Times are in seconds, ``created`` since 1970, memory in bytes; folders are relative to the workspace."""

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
