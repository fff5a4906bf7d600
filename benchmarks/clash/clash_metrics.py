"""The metrics of CLASH, as functions of label counts.

A metric takes ``counts`` of shape (..., conditions, labels), in the order of ``CONDITIONS`` and ``LABELS``, and
``answers`` of shape (..., conditions), the number of answers; it returns shape (...). Both are needed because an answer
can match several labels, as in the published code. Undefined values are nan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.clash.clash_constants import CONDITIONS, CORRECT, LABELS, MULTIPLE_CHOICE
from benchmarks.stats.intervals import ratio
from benchmarks.vocabulary import LabelMetrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

COLUMNS = {label: label.capitalize() for label in LABELS}
"""The column names of the labels in Tables 1, 5, 7, 10, 11 and 16."""

TASKS = {"multiple choice": ("mc-conflicting", "mc-original"), "open-ended": ("open-conflicting", "open-original")}
"""The two tasks, each with its conflicting and its original condition."""


@dataclass(frozen=True, slots=True)
class LabelRate:
    """The share of answers with the label named for their condition, pooled over the conditions.

    With one condition this is a column of Table 1; with both of a task and what is correct there, it is "Overall" (section
    4.4). It is nan unless each condition has an answer: over fewer it would be another figure.
    """

    pairs: tuple[tuple[str, str], ...]
    """Pairs of condition and label."""

    @property
    def conditions(self) -> tuple[str, ...]:
        return tuple(condition for condition, _ in self.pairs)

    def __call__(self, counts: Array, answers: Array) -> Array:
        per_condition = answers[..., [CONDITIONS.index(condition) for condition in self.conditions]]
        part = sum(counts[..., CONDITIONS.index(condition), LABELS.index(label)] for condition, label in self.pairs)
        return ratio(np.asarray(part), np.where((per_condition > 0).all(-1), per_condition.sum(-1), 0))


def possible_labels(condition: str) -> tuple[str, ...]:
    """Return the possible labels under ``condition``: an open question has no distractor."""
    return LABELS if condition in MULTIPLE_CHOICE else tuple(label for label in LABELS if label != "DISTRACTOR")


def label_columns(condition: str) -> dict[str, LabelRate]:
    """Return the columns of Table 1, or of Table 10 for an open condition."""
    return {COLUMNS[label]: LabelRate(((condition, label),)) for label in possible_labels(condition)}


def no_conflict_columns(conflicting: str, original: str) -> dict[str, LabelRate]:
    """Return the columns of Table 6, which are the first three of Table 3."""
    conflict, no_conflict = (conflicting, CORRECT[conflicting]), (original, CORRECT[original])
    return {
        "Conflict": LabelRate((conflict,)),
        "No conflict": LabelRate((no_conflict,)),
        "Overall": LabelRate((conflict, no_conflict)),
    }


def label_metrics() -> LabelMetrics:
    """Return the metrics of both tasks, with one label an answer, for correction by human labels."""
    metrics = {
        f"{column}, {task}": _of_labels(rate)
        for task, (conflicting, original) in TASKS.items()
        for column, rate in (label_columns(conflicting) | no_conflict_columns(conflicting, original)).items()
    }
    return LabelMetrics(CONDITIONS, LABELS, metrics)


def _of_labels(rate: LabelRate) -> Callable[[Array], Array]:
    return lambda counts: rate(counts, counts.sum(-1))
