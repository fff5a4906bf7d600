"""JSON of ``rashomon audit``."""

from __future__ import annotations

from dataclasses import dataclass

from app.json_output.tables_json import EstimateJson
from benchmarks.audit import TaskAudit


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGain:
    """The share of a task's questions that a run answers rightly, and its gain over the best rule that looks at no source."""

    task: str
    right: EstimateJson
    gain: EstimateJson


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionScore:
    """A question that counts in the gain: the scores of the run, of the best rule that looks at no source, and of guessing."""

    id: str
    task: str
    right: float
    blind: float
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedBuild:
    """A build; ``data_digest`` is the sha256 of its manifest, in hex."""

    benchmark: str
    data_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """An audit of the questions of a build or, if ``build`` is null, of a run, which alone has ``gains`` and ``questions``.

    ``not_shown`` says that the run is not shown to use its sources; empty if it is. ``open_questions`` are not audited.
    """

    build: AuditedBuild | None
    sentence: str
    not_shown: str
    tasks: tuple[TaskAudit, ...]
    open_questions: int
    gains: tuple[TaskGain, ...]
    questions: tuple[QuestionScore, ...]
