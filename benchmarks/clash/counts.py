"""Records as arrays: which labels one judge gave to each answer of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.base import Record, Verdict
from benchmarks.clash.constants import CONDITIONS, LABELS, MULTIPLE_CHOICE
from benchmarks.failure_table import OUTCOMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INCORRECT = LABELS.index("INCORRECT")
_EXCLUDING = 2
"""The outcomes before this one are counted: an answer without anything to label is Incorrect, as in the paper."""


@dataclass(frozen=True)
class InstanceArrays:
    """The instances of a run, an array of shape (records,) for each thing that tables are made by."""

    example: NDArray[np.int64]
    condition: NDArray[np.int64]
    change: NDArray[np.object_]
    category: NDArray[np.object_]
    relation: NDArray[np.object_]


@dataclass(frozen=True)
class ClashCounts:
    """What one judge says of a run, in the order of its records.

    ``outcome`` of shape (records,) is an index in ``OUTCOMES``. ``flags`` of shape (records, labels) is every label that
    fits, ``label`` of shape (records,) the index of the exclusive one; an answer that fits none, or is empty, is Incorrect.
    Open questions show no distractor: an open answer that is called nothing else is Incorrect. Only answers that are
    ``counted`` have flags.
    """

    judge: str
    asked: InstanceArrays
    outcome: NDArray[np.int64]
    flags: NDArray[np.bool_]
    label: NDArray[np.int64]

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which records enter the tables: labelled and unparsed ones; shape (records,)."""
        return self.outcome < _EXCLUDING

    @property
    def one_label(self) -> NDArray[np.bool_]:
        """``flags`` of the exclusive reading alone; the same shape."""
        only: NDArray[np.bool_] = (self.label[:, None] == np.arange(len(LABELS))) & self.counted[:, None]
        return only


def asked(records: Sequence[Record]) -> InstanceArrays:
    """The instances of ``records``."""
    numbers: dict[str, int] = {}
    instances = [record.instance for record in records]

    def stratum(key: str) -> NDArray[np.object_]:
        return np.array([each.strata.get(key, "") for each in instances], dtype=np.object_)

    return InstanceArrays(
        np.array([numbers.setdefault(each.group, len(numbers)) for each in instances], dtype=np.int64),
        np.array([CONDITIONS.index(each.condition) for each in instances], dtype=np.int64),
        stratum("change"),
        stratum("category"),
        stratum("relation"),
    )


def tally(records: Sequence[Record], of: InstanceArrays, judge: str) -> ClashCounts:
    """What ``judge`` says of ``records``, whose instances are ``of``."""
    outcomes = [record.outcome(judge) for record in records]
    read = [
        _read(record, record.verdicts[judge]) if outcome == "labelled" else (0, _INCORRECT)
        for record, outcome in zip(records, outcomes, strict=True)
    ]
    outcome = np.array([OUTCOMES.index(each) for each in outcomes], dtype=np.int64)
    sets, label = np.array(read, dtype=np.int64).reshape(-1, 2).T
    flags = (sets[:, None] >> np.arange(len(LABELS)) & 1).astype(np.bool_)
    flags[:, _INCORRECT] |= ~flags[:, :_INCORRECT].any(1)
    return ClashCounts(judge, of, outcome, flags & (outcome < _EXCLUDING)[:, None], label)


def per_example(
    example: NDArray[np.int64], condition: NDArray[np.int64], marks: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """``marks`` of shape (answers, kinds) counted by example and condition: shape (examples, conditions, kinds)."""
    found, at = np.unique(example, return_inverse=True)
    counts = np.zeros((len(found), len(CONDITIONS), marks.shape[1]), dtype=np.int32)
    np.add.at(counts, (at, condition), marks)
    return counts


def _read(record: Record, verdict: Verdict) -> tuple[int, int]:
    """The labels that fit, as a set of bits, and the index of the exclusive one."""
    choice = record.instance.condition in MULTIPLE_CHOICE
    return _bits(verdict.flags or (str(verdict.label),), choice), _shown(str(verdict.label), choice)


@cache
def _bits(labels: tuple[str, ...], choice: bool) -> int:
    return sum(1 << LABELS.index(label) for label in set(labels) if choice or label != "DISTRACTOR")


@cache
def _shown(label: str, choice: bool) -> int:
    return LABELS.index(label if choice or label != "DISTRACTOR" else "INCORRECT")
