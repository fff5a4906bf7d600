"""CLASH's figures, as functions of counts of labels.

A figure takes ``counts`` of shape (..., conditions, labels), in the order of ``terms.CONDITIONS`` and ``terms.LABELS``, and
``answers`` of shape (..., conditions), how many answers they are of; it returns shape (...). The two are apart because an
answer can match several labels (as the published code counts them). What is undefined is nan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.base import LabelMetrics
from benchmarks.clash.constants import CONDITIONS, CORRECT, LABELS, MULTIPLE_CHOICE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

COLUMNS = {label: label.capitalize() for label in LABELS}
"""The labels as the columns of Tables 1, 5, 7, 10, 11 and 16 call them."""

TASKS = {"multiple choice": ("mc-conflicting", "mc-original"), "open-ended": ("open-conflicting", "open-original")}
"""The two tasks, each with its condition of the conflicting caption and of the original one."""


@dataclass(frozen=True, slots=True)
class LabelRate:
    """How often answers have the label that is named for their condition, over all those conditions together.

    With one condition this is a column of Table 1; with both of a task and what is correct there, it is "Overall" (section
    4.4). It is nan unless each condition has an answer: over fewer it would be another figure.
    """

    of: tuple[tuple[str, str], ...]
    """Pairs of condition and label."""

    @property
    def conditions(self) -> tuple[str, ...]:
        return tuple(condition for condition, _ in self.of)

    def __call__(self, counts: Array, answers: Array) -> Array:
        each = answers[..., [CONDITIONS.index(condition) for condition in self.conditions]]
        part = sum(counts[..., CONDITIONS.index(condition), LABELS.index(label)] for condition, label in self.of)
        return _ratio(np.asarray(part, float), np.where((each > 0).all(-1), each.sum(-1), 0))


def labels_of(condition: str) -> tuple[str, ...]:
    """The labels that answers under ``condition`` can have: an open question shows no distractor."""
    return LABELS if condition in MULTIPLE_CHOICE else tuple(label for label in LABELS if label != "DISTRACTOR")


def distribution(condition: str) -> dict[str, LabelRate]:
    """The columns of Table 1, or of Table 10 for an open condition."""
    return {COLUMNS[label]: LabelRate(((condition, label),)) for label in labels_of(condition)}


def no_conflict(conflicting: str, original: str) -> dict[str, LabelRate]:
    """The columns of Table 6, which are the first three of Table 3."""
    seen, unseen = (conflicting, CORRECT[conflicting]), (original, CORRECT[original])
    return {"Conflict": LabelRate((seen,)), "No conflict": LabelRate((unseen,)), "Overall": LabelRate((seen, unseen))}


def figures() -> LabelMetrics:
    """The figures of both tasks, each answer having one label: for correcting them by labels given by people."""
    of = {
        f"{column}, {task}": _of_labels(rate)
        for task, (conflicting, original) in TASKS.items()
        for column, rate in (distribution(conflicting) | no_conflict(conflicting, original)).items()
    }
    return LabelMetrics(CONDITIONS, LABELS, of, unparsed="INCORRECT")


def _of_labels(rate: LabelRate) -> Callable[[Array], Array]:
    return lambda counts: rate(counts, counts.sum(-1))


def _ratio(part: Array, whole: Array) -> Array:
    found: Array = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return found
