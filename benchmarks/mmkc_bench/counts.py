"""Records as arrays: what became of each answer under conflict, and of each answer about a document."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.base import Record
from benchmarks.mmkc_bench.constants import CONFLICT, DETECTION, ORIGINAL, RATES, TEXT, TYPES, letter_key
from benchmarks.mmkc_bench.parse_answer import is_counter, official_label, own_answer, question_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

_Name = tuple[str, str]
"""The type of a row and its field ``instance``: what the published evaluation joins by, file by file."""

KINDS = tuple(RATES)

ALREADY = "already the counter answer"
NO_OWN = "own answer not there"
OWN_ERROR = "own answer in error"
OWN_UNPARSED = "own answer unparsed"
LEFT_OUT = (ALREADY, NO_OWN, OWN_ERROR, OWN_UNPARSED, "unparsed", "judge-failed", "error", "pending")
"""Why an answer under conflict is in no rate; each is counted by itself."""


@dataclass(frozen=True, slots=True)
class MMKCCounts:
    """One record as a table counts it: ``outcome`` is one of ``KINDS``, of CORRECT and WRONG, or of ``LEFT_OUT``."""

    thing: tuple[str, str]
    """Data set and name of what is in its images. Its facts and repeated rows are drawn together in the bootstrap."""
    kind: str
    condition: str
    outcome: str


def by_judge(records: Iterable[Record], judge: str) -> Iterator[MMKCCounts]:
    """The records under conflict and of detection, as ``judge`` labels them."""
    for record in records:
        condition = record.instance.condition
        if condition in CONFLICT:
            yield _counted(record, _under_conflict(record, judge))
        elif condition in DETECTION:
            outcome = record.outcome(judge)
            yield _counted(record, _label(record, judge, ("CORRECT", "WRONG")) if outcome == "labelled" else outcome)


def officially(records: Sequence[Record]) -> Iterator[MMKCCounts]:
    """Count the multiple choices under conflict as the published evaluation does.

    It reads the answers under conflict into a mapping by the field ``instance``, so that of several rows of one name the last
    remains, and compares every row of the original setting with that one. A row of the original setting is left out by the
    letters that stand in it, and labelled by those of the row that remains.
    """
    originals: dict[_Name, list[Record]] = defaultdict(list)
    remaining: dict[tuple[str, _Name], Record] = {}
    letters: dict[tuple[str, str], Sequence[str]] = {}
    for record in records:
        instance = record.instance
        if instance.condition in CONFLICT:
            letters[instance.condition, instance.group] = instance.references.get(letter_key(TEXT), ())
        if record.answer is None or record.answer.finish_reason == "error":
            continue
        name = instance.strata.get("type", ""), instance.strata.get("instance", "")
        if instance.condition == ORIGINAL[0]:
            originals[name].append(record)
        elif instance.condition in CONFLICT and instance.condition.endswith("-mc"):
            remaining[instance.condition, name] = record
    for (condition, name), record in remaining.items():
        if name not in originals:
            yield _counted(record, NO_OWN)
        counters = letters[condition, record.instance.group]
        for original in originals.get(name, ()):
            before, after = original.answer, record.answer
            assert before is not None
            assert after is not None
            filtered = letters.get((condition, original.instance.group), counters)
            label = ALREADY if before.text in filtered else official_label(after.text, before.text, counters)
            yield _counted(record, label or "unparsed")


def per_thing(found: Iterable[MMKCCounts], conditions: Sequence[str], outcomes: Sequence[str]) -> Counts:
    """Answers counted: an array of shape (things, conditions, types, outcomes)."""
    things: dict[tuple[str, str], int] = {}
    places = []
    for each in found:
        if each.condition in conditions and each.outcome in outcomes and each.kind in TYPES:
            thing = things.setdefault(each.thing, len(things))
            place = conditions.index(each.condition), TYPES.index(each.kind), outcomes.index(each.outcome)
            places.append((thing, *place))
    counts = np.zeros((len(things), len(conditions), len(TYPES), len(outcomes)))
    if places:
        np.add.at(counts, tuple(np.array(places).T), 1)
    return counts


def left_out(found: Iterable[MMKCCounts], conditions: Sequence[str]) -> Counter[str]:
    """How many answers under ``conditions`` are in no figure, by why."""
    return Counter(each.outcome for each in found if each.condition in conditions and each.outcome in LEFT_OUT)


def _counted(record: Record, outcome: str) -> MMKCCounts:
    strata = record.instance.strata
    thing = strata.get("dataset", ""), strata.get("instance", record.instance.group)
    return MMKCCounts(thing, strata.get("type", ""), record.instance.condition, outcome)


def _under_conflict(record: Record, judge: str) -> str:
    if record.answer is None:
        return "pending"
    if record.answer.finish_reason == "error":
        return "error"
    if record.basis is None:
        return NO_OWN
    if record.basis.finish_reason == "error":
        return OWN_ERROR
    own, _ = own_answer(record)
    if own is None:
        return OWN_UNPARSED
    instance = record.instance
    if is_counter(own, instance.condition, instance.references, question_of(record)):
        return ALREADY
    outcome = record.outcome(judge)
    return _label(record, judge, KINDS) if outcome == "labelled" else outcome


def _label(record: Record, judge: str, known: Sequence[str]) -> str:
    found = record.verdicts[judge].label
    return found if found is not None and found in known else "judge-failed"
