"""JSON of the examination of a judge."""

from __future__ import annotations

from dataclasses import dataclass

from app.json_output.tables_json import EstimateJson, TableJson
from judges.examination.examination_result import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEffectJson:
    """The labels of answers judged twice, with both orders of the references. ``preferred`` is first, last or empty."""

    judged: int
    changed: int
    to_first: int
    to_second: int
    image_first: EstimateJson
    text_first: EstimateJson
    preferred: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileAnswers:
    """The number of hostile answers, and the ids of those that steered the judge."""

    answers: int
    steered: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """An answer to which the judge gives another label than the set."""

    id: str
    label: str
    judge: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeExamination:
    """An examination: ``right`` of the labels that the judge gives. ``outcomes`` are counts by status of its verdicts."""

    sentences: tuple[str, ...]
    answers: int
    outcomes: dict[str, int]
    right: int
    agreement: EstimateJson
    order: OrderEffectJson | None
    hostile: HostileAnswers
    usage: Usage
    recorded: bool
    """False if requests got no reply, so that ``rashomon judges`` does not list the result."""
    tables: tuple[TableJson, ...]
    disagreements: tuple[Disagreement, ...]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminationPlan:
    """Plan of an examination: a sentence for each model. ``problem`` says why it could not begin."""

    sentences: tuple[str, ...]
    problem: str | None


ExaminationResult = JudgeExamination | ExaminationPlan
"""Result of ``rashomon judges check``; with ``--dry-run`` the second."""
