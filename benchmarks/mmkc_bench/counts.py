"""Counts of answers under conflict and in detection, as arrays."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.mmkc_bench.constants import (
    CONFLICT_CONDITIONS,
    DETECTION_CONDITIONS,
    ORIGINAL_CONDITIONS,
    RATES,
    ROW_TYPES,
)
from benchmarks.mmkc_bench.parse_answer import label_of_letters
from benchmarks.mmkc_bench.reading import ALREADY_COUNTER, NO_OWN_ANSWER, OWN_ANSWER_ERROR, OWN_ANSWER_UNPARSED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

_RowName = tuple[str, str]
"""The type of a row and its field ``instance``: the key by which the published evaluation joins files."""

CONFLICT_LABELS = tuple(RATES)

EXCLUSION_REASONS = (
    ALREADY_COUNTER,
    NO_OWN_ANSWER,
    OWN_ANSWER_ERROR,
    OWN_ANSWER_UNPARSED,
    "unparsed",
    "undecided",
    "judge-failed",
    "error",
    "pending",
)
"""The reasons why an answer under conflict is excluded from the rates; each is counted separately."""


@dataclass(frozen=True, slots=True)
class CountedAnswer:
    """One record as a table counts it; ``outcome`` is in ``CONFLICT_LABELS``, CORRECT, WRONG, or in ``EXCLUSION_REASONS``."""

    entity: tuple[str, str]
    """The data set and name of the pictured entity. The bootstrap draws its facts and repeated rows as one unit."""
    kind: str
    condition: str
    outcome: str


def count_by_judge(answers: Answers, judge: str) -> Iterator[CountedAnswer]:
    """Yield the records under conflict and of detection, as ``judge`` labels them."""
    outcomes = [_outcome(kind, judge) for kind in answers.kinds]
    for number, group in zip(answers.kind.tolist(), answers.group.tolist(), strict=True):
        if (outcome := outcomes[number]) is not None:
            yield _counted_answer(answers.kinds[number], group, outcome)


def count_officially(answers: Answers) -> Iterator[CountedAnswer]:
    """Yield the multiple-choice answers under conflict as the published evaluation counts them.

    It maps answers under conflict by the field ``instance``, so that of several rows with one name only the last
    remains, and compares every row of the original setting with that one. A row of the original setting is filtered by
    its own letters, and labelled by those of the remaining row.
    """
    originals: dict[_RowName, list[tuple[AnswerKind, int]]] = defaultdict(list)
    remaining: dict[tuple[str, _RowName], tuple[AnswerKind, int]] = {}
    letters: dict[tuple[str, int], Sequence[str]] = {}
    for number, group in zip(answers.kind.tolist(), answers.group.tolist(), strict=True):
        kind = answers.kinds[number]
        if kind.condition in CONFLICT_CONDITIONS:
            letters[kind.condition, group] = kind.reading.counters
        if not kind.is_answered:
            continue
        name = kind.strata.get("type", ""), kind.strata.get("instance", "")
        if kind.condition == ORIGINAL_CONDITIONS[0]:
            originals[name].append((kind, group))
        elif kind.condition in CONFLICT_CONDITIONS and kind.condition.endswith("-mc"):
            remaining[kind.condition, name] = kind, group
    for (condition, name), (kind, group) in remaining.items():
        if name not in originals:
            yield _counted_answer(kind, group, NO_OWN_ANSWER)
        counters = letters[condition, group]
        for original, original_group in originals.get(name, ()):
            before, after = original.reading, kind.reading
            filtered = letters.get((condition, original_group), counters)
            label: str | None = ALREADY_COUNTER
            if not (before.is_letter and before.letter in filtered):
                label = label_of_letters(after.letter, before.letter, counters)
            yield _counted_answer(kind, group, label or "unparsed")


def entity_counts(answers: Iterable[CountedAnswer], conditions: Sequence[str], outcomes: Sequence[str]) -> Counts:
    """Return the counts of answers as an array of shape (entities, conditions, types, outcomes)."""
    entities: dict[tuple[str, str], int] = {}
    cells = []
    for answer in answers:
        if answer.condition in conditions and answer.outcome in outcomes and answer.kind in ROW_TYPES:
            entity = entities.setdefault(answer.entity, len(entities))
            cell = conditions.index(answer.condition), ROW_TYPES.index(answer.kind), outcomes.index(answer.outcome)
            cells.append((entity, *cell))
    counts = np.zeros((len(entities), len(conditions), len(ROW_TYPES), len(outcomes)))
    if cells:
        np.add.at(counts, tuple(np.array(cells).T), 1)
    return counts


def count_exclusions(answers: Iterable[CountedAnswer], conditions: Sequence[str]) -> Counter[str]:
    """Return the number of answers under ``conditions`` that are in no rate, by reason."""
    return Counter(
        answer.outcome for answer in answers if answer.condition in conditions and answer.outcome in EXCLUSION_REASONS
    )


def _counted_answer(kind: AnswerKind, group: int, outcome: str) -> CountedAnswer:
    strata = kind.strata
    entity = strata.get("dataset", ""), strata.get("instance", f"example {group}")
    return CountedAnswer(entity, strata.get("type", ""), kind.condition, outcome)


def _outcome(kind: AnswerKind, judge: str) -> str | None:
    """Return the outcome of an answer under conflict or of detection; None for other answers."""
    outcome = kind.outcome(judge)
    if kind.condition in CONFLICT_CONDITIONS:
        if kind.is_answered and kind.reading.incomparable:
            return str(kind.reading.incomparable)
        return _known_label(kind, judge, CONFLICT_LABELS) if outcome == "labelled" else outcome
    if kind.condition in DETECTION_CONDITIONS:
        return _known_label(kind, judge, ("CORRECT", "WRONG")) if outcome == "labelled" else outcome
    return None


def _known_label(kind: AnswerKind, judge: str, labels: Sequence[str]) -> str:
    label = kind.label(judge)
    return label if label in labels else "judge-failed"
