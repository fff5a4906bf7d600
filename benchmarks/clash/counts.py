"""Label counts: the labels that one judge gave to each answer of a run, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.clash.constants import CONDITIONS, LABELS, MULTIPLE_CHOICE
from benchmarks.failure_table import OUTCOMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INCORRECT = LABELS.index("INCORRECT")
_COUNTED_OUTCOMES = 2
"""The number of counted outcomes: an answer with nothing to label counts as Incorrect, as in the paper."""


@dataclass(frozen=True)
class InstanceArrays:
    """The instances of a run: an array of shape (records,) for each property that tables use."""

    example: NDArray[np.int32]
    condition: NDArray[np.int64]
    change: NDArray[np.object_]
    category: NDArray[np.object_]
    relation: NDArray[np.object_]


@dataclass(frozen=True)
class ClashCounts:
    """The labels of one judge for a run, in record order.

    ``outcome`` of shape (records,) is an index in ``OUTCOMES``. ``flags`` of shape (records, labels) is every label that
    fits, ``label`` of shape (records,) the index of the exclusive one; an answer that fits none, or is empty, is Incorrect.
    Open questions have no distractor, so an open answer with no other label is Incorrect. Only answers that are
    ``counted`` have flags.
    """

    judge: str
    instances: InstanceArrays
    outcome: NDArray[np.int64]
    flags: NDArray[np.bool_]
    label: NDArray[np.int64]

    @property
    def counted(self) -> NDArray[np.bool_]:
        """A mask of the records that enter the tables (labelled or unparsed); shape (records,)."""
        return self.outcome < _COUNTED_OUTCOMES

    @property
    def exclusive_flags(self) -> NDArray[np.bool_]:
        """The exclusive label of each answer as flags; shape (records, labels)."""
        only: NDArray[np.bool_] = (self.label[:, None] == np.arange(len(LABELS))) & self.counted[:, None]
        return only


def instance_arrays(answers: Answers) -> InstanceArrays:
    """Return the instances of ``answers`` as arrays."""

    def stratum(key: str) -> NDArray[np.object_]:
        values: NDArray[np.object_] = np.array([kind.strata.get(key, "") for kind in answers.kinds], dtype=np.object_)
        return values[answers.kind]

    return InstanceArrays(
        answers.group,
        answers.codes(lambda kind: CONDITIONS.index(kind.condition)),
        stratum("change"),
        stratum("category"),
        stratum("relation"),
    )


def tally(answers: Answers, instances: InstanceArrays, judge: str) -> ClashCounts:
    """Return the labels of ``judge`` for ``answers``, whose instances are ``instances``."""
    outcomes = [kind.outcome(judge) for kind in answers.kinds]
    readings = [
        _read(kind, judge) if outcome == "labelled" else (0, _INCORRECT)
        for kind, outcome in zip(answers.kinds, outcomes, strict=True)
    ]
    outcome = np.array([OUTCOMES.index(name) for name in outcomes], dtype=np.int64)
    sets, label = np.array(readings, dtype=np.int64).reshape(-1, 2).T
    flags = (sets[:, None] >> np.arange(len(LABELS)) & 1).astype(np.bool_)
    flags[:, _INCORRECT] |= ~flags[:, :_INCORRECT].any(1)
    flags &= (outcome < _COUNTED_OUTCOMES)[:, None]
    kind = answers.kind
    return ClashCounts(judge, instances, outcome[kind], flags[kind], label[kind])


def counts_per_example(
    example: NDArray[np.int32], condition: NDArray[np.int64], marks: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Return ``marks`` (answers, kinds) summed by example and condition: shape (examples, conditions, kinds)."""
    examples, index = np.unique(example, return_inverse=True)
    counts = np.zeros((len(examples), len(CONDITIONS), marks.shape[1]), dtype=np.int32)
    np.add.at(counts, (index, condition), marks)
    return counts


def _read(kind: AnswerKind, judge: str) -> tuple[int, int]:
    """Return the labels that fit, as a bit set, and the index of the exclusive label."""
    choice, label = kind.condition in MULTIPLE_CHOICE, kind.label(judge)
    return _bits(kind.verdicts[judge].flags or (label,), choice), _label_index(label, choice)


@cache
def _bits(labels: tuple[str, ...], choice: bool) -> int:
    return sum(1 << LABELS.index(label) for label in set(labels) if choice or label != "DISTRACTOR")


@cache
def _label_index(label: str, choice: bool) -> int:
    return LABELS.index(label if choice or label != "DISTRACTOR" else "INCORRECT")
