"""Counts of answers under conflict and in detection, as arrays."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.mmkc_bench.constants import (
    CONFLICT_CONDITIONS,
    DETECTION_CONDITIONS,
    ORIGINAL_CONDITIONS,
    RATES,
    ROW_TYPES,
    TEXT,
    letter_key,
)
from benchmarks.mmkc_bench.parse_answer import is_counter, official_label, own_answer, question_and_subject
from benchmarks.vocabulary import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

_RowName = tuple[str, str]
"""The type of a row and its field ``instance``: the key by which the published evaluation joins files."""

CONFLICT_LABELS = tuple(RATES)

ALREADY_COUNTER = "already the counter answer"
NO_OWN_ANSWER = "own answer not there"
OWN_ANSWER_ERROR = "own answer in error"
OWN_ANSWER_UNPARSED = "own answer unparsed"
EXCLUSION_REASONS = (
    ALREADY_COUNTER,
    NO_OWN_ANSWER,
    OWN_ANSWER_ERROR,
    OWN_ANSWER_UNPARSED,
    "unparsed",
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


def count_by_judge(records: Iterable[Record], judge: str) -> Iterator[CountedAnswer]:
    """Yield the records under conflict and of detection, as ``judge`` labels them."""
    for record in records:
        condition = record.instance.condition
        if condition in CONFLICT_CONDITIONS:
            yield _counted_answer(record, _conflict_outcome(record, judge))
        elif condition in DETECTION_CONDITIONS:
            outcome = record.outcome(judge)
            yield _counted_answer(
                record, _known_label(record, judge, ("CORRECT", "WRONG")) if outcome == "labelled" else outcome
            )


def count_officially(records: Sequence[Record]) -> Iterator[CountedAnswer]:
    """Yield the multiple-choice answers under conflict as the published evaluation counts them.

    It maps answers under conflict by the field ``instance``, so that of several rows with one name only the last
    remains, and compares every row of the original setting with that one. A row of the original setting is filtered by
    its own letters, and labelled by those of the remaining row.
    """
    originals: dict[_RowName, list[Record]] = defaultdict(list)
    remaining: dict[tuple[str, _RowName], Record] = {}
    letters: dict[tuple[str, str], Sequence[str]] = {}
    for record in records:
        instance = record.instance
        if instance.condition in CONFLICT_CONDITIONS:
            letters[instance.condition, instance.group] = instance.references.get(letter_key(TEXT), ())
        if record.answer is None or record.answer.finish_reason == "error":
            continue
        name = instance.strata.get("type", ""), instance.strata.get("instance", "")
        if instance.condition == ORIGINAL_CONDITIONS[0]:
            originals[name].append(record)
        elif instance.condition in CONFLICT_CONDITIONS and instance.condition.endswith("-mc"):
            remaining[instance.condition, name] = record
    for (condition, name), record in remaining.items():
        if name not in originals:
            yield _counted_answer(record, NO_OWN_ANSWER)
        counters = letters[condition, record.instance.group]
        for original in originals.get(name, ()):
            before, after = original.answer, record.answer
            assert before is not None
            assert after is not None
            filtered = letters.get((condition, original.instance.group), counters)
            label = ALREADY_COUNTER if before.text in filtered else official_label(after.text, before.text, counters)
            yield _counted_answer(record, label or "unparsed")


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


def _counted_answer(record: Record, outcome: str) -> CountedAnswer:
    strata = record.instance.strata
    entity = strata.get("dataset", ""), strata.get("instance", record.instance.group)
    return CountedAnswer(entity, strata.get("type", ""), record.instance.condition, outcome)


def _conflict_outcome(record: Record, judge: str) -> str:
    if record.answer is None:
        return "pending"
    if record.answer.finish_reason == "error":
        return "error"
    if record.basis is None:
        return NO_OWN_ANSWER
    if record.basis.finish_reason == "error":
        return OWN_ANSWER_ERROR
    own_label, _ = own_answer(record)
    if own_label is None:
        return OWN_ANSWER_UNPARSED
    instance = record.instance
    if is_counter(own_label, instance.condition, instance.references, question_and_subject(record)):
        return ALREADY_COUNTER
    outcome = record.outcome(judge)
    return _known_label(record, judge, CONFLICT_LABELS) if outcome == "labelled" else outcome


def _known_label(record: Record, judge: str, labels: Sequence[str]) -> str:
    label = record.verdicts[judge].label
    return label if label is not None and label in labels else "judge-failed"
