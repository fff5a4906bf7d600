"""Records as arrays: what became of each answer under conflict, and of each answer about a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.base import Record
from benchmarks.mmkc_bench.reading import is_counter, official_label, own_answer
from benchmarks.mmkc_bench.terms import CONFLICT, DETECTION, ORIGINAL, RATES, TEXT, TYPES, letter_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

KINDS = tuple(RATES)

ALREADY = "already the counter answer"
NO_OWN = "own answer not there"
OWN_ERROR = "own answer in error"
OWN_UNPARSED = "own answer unparsed"
LEFT_OUT = (ALREADY, NO_OWN, OWN_ERROR, OWN_UNPARSED, "unparsed", "judge-failed", "error", "pending")
"""Why an answer under conflict is in no rate; each is counted by itself."""


@dataclass(frozen=True, slots=True)
class Counted:
    """One record as a table counts it: ``outcome`` is one of ``KINDS``, of CORRECT and WRONG, or of ``LEFT_OUT``."""

    thing: tuple[str, str]
    """Data set and name of what is in its images. Its facts and repeated rows are drawn together in the bootstrap."""
    kind: str
    condition: str
    outcome: str


def by_judge(records: Iterable[Record], judge: str) -> Iterator[Counted]:
    """The records under conflict and of detection, as ``judge`` labels them."""
    for record in records:
        condition = record.instance.condition
        if condition in CONFLICT:
            yield _counted(record, _under_conflict(record, judge))
        elif condition in DETECTION:
            outcome = record.outcome(judge)
            yield _counted(record, _label(record, judge, ("CORRECT", "WRONG")) if outcome == "labelled" else outcome)


def officially(records: Sequence[Record]) -> Iterator[Counted]:
    """The multiple choices under conflict as the published evaluation counts them.

    It joins both files by the field ``instance``, so of several rows of one name the last is the only one.
    """
    originals: dict[tuple[str, str], str] = {}
    shown: dict[tuple[str, str, str], tuple[Record, str]] = {}
    for record in records:
        strata, condition = record.instance.strata, record.instance.condition
        if record.answer is None or record.answer.finish_reason == "error":
            continue
        name = strata.get("type", ""), strata.get("instance", "")
        if condition == ORIGINAL[0]:
            originals[name] = record.answer.text
        elif condition in CONFLICT and condition.endswith("-mc"):
            shown[(condition, *name)] = record, record.answer.text
    for (_, *named), (record, text) in shown.items():
        original = originals.get((named[0], named[1]))
        if original is None:
            yield _counted(record, NO_OWN)
            continue
        found = official_label(text, original, record.instance.references.get(letter_key(TEXT), ()))
        yield _counted(record, "unparsed" if found is None else ALREADY if found == "LEFT-OUT" else found)


def per_thing(found: Iterable[Counted], conditions: Sequence[str], outcomes: Sequence[str]) -> Counts:
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


def left_out(found: Iterable[Counted], conditions: Sequence[str]) -> Counter[str]:
    """How many answers under ``conditions`` are in no figure, by why."""
    return Counter(each.outcome for each in found if each.condition in conditions and each.outcome in LEFT_OUT)


def _counted(record: Record, outcome: str) -> Counted:
    strata = record.instance.strata
    thing = strata.get("dataset", ""), strata.get("instance", record.instance.group)
    return Counted(thing, strata.get("type", ""), record.instance.condition, outcome)


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
    if is_counter(own, record.instance.condition, record.instance.references):
        return ALREADY
    outcome = record.outcome(judge)
    return _label(record, judge, KINDS) if outcome == "labelled" else outcome


def _label(record: Record, judge: str, known: Sequence[str]) -> str:
    found = record.verdicts[judge].label
    return found if found is not None and found in known else "judge-failed"
