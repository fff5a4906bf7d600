"""The paper's metrics, as functions of counts of answers.

Counts have shape (..., conditions, tasks, 2), in the order of ``constants.CONDITIONS`` and ``constants.TASKS``: correct
answers, and all answers. :func:`accuracy` turns them into (..., conditions, tasks), and a :class:`TaskMean` turns the
accuracies of one condition, (..., tasks), into (...). Undefined values are nan: a mean over fewer tasks would be
another metric.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.base import LabelMetrics
from benchmarks.crosscheck_bench.constants import CAPABILITIES, CONDITIONS, LABELS, LEVELS, TASKS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TASK_KEYS = tuple(TASKS)


@dataclass(frozen=True, slots=True)
class TaskMean:
    """The unweighted mean of the accuracies of ``tasks``, minus that of the task ``less``, if there is one."""

    tasks: tuple[str, ...]
    less: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """All tasks without which the mean is undefined."""
        return (*self.tasks, self.less) if self.less else self.tasks

    def __call__(self, accuracies: Array) -> Array:
        if not self.tasks:
            return np.full(accuracies.shape[:-1], np.nan)
        mean: Array = accuracies[..., [TASK_KEYS.index(task) for task in self.tasks]].mean(-1)
        return mean - accuracies[..., TASK_KEYS.index(self.less)] if self.less else mean


MAIN: Mapping[str, TaskMean] = {"Avg.": TaskMean(TASK_KEYS), **{key: TaskMean((key,)) for key in TASK_KEYS}}
"""The columns of Table 1."""

BY_LEVEL: Mapping[str, TaskMean] = {
    f"{level} {name}": TaskMean(tuple(key for key, task in TASKS.items() if task.level == level))
    for level, name in LEVELS.items()
}

BY_CAPABILITY: Mapping[str, TaskMean] = {
    capability: TaskMean(tuple(key for key, task in TASKS.items() if capability in task.capabilities))
    for capability in CAPABILITIES
}
"""Accuracy over the tasks that need a capability (our reading of Figure 5; no task needs A7 only)."""

SINGLE_CAPABILITY: Mapping[str, TaskMean] = {
    capability: TaskMean(tuple(key for key, task in TASKS.items() if task.capabilities == (capability,)))
    for capability in CAPABILITIES
}
"""Accuracy on the one task that needs only this capability: Ovis2-8B's 36.6% "on A5" is its SP. A7 has no such task."""

_PAIRS = {"BR": ("BR*",), "SPU": ("SKU",), "BDC": ("PI", "BI", "BI*")}
"""The atomic variants of Table 2 and the compositional ones that add capabilities to them."""

COMPOSITION: Mapping[str, TaskMean] = {
    name: mean
    for atomic, others in _PAIRS.items()
    for name, mean in (
        (atomic, TaskMean((atomic,))),
        *(
            (name, mean)
            for key in others
            for name, mean in ((key, TaskMean((key,))), (f"{key} drop", TaskMean((atomic,), key)))
        ),
    )
}
"""The columns of Table 2; a drop is positive if the compositional task is the harder one."""

INTERVENTIONS: Mapping[str, TaskMean] = {
    "A5: Numeric": BY_CAPABILITY["A5"],
    "A6: OCR": BY_CAPABILITY["A6"],
    "A7: Logic": BY_CAPABILITY["A7"],
}
"""The columns of Table 3, over the tasks that need each capability (our reading)."""


SHIFT: Mapping[str, TaskMean] = {
    "Accuracy": TaskMean(TASK_KEYS),
    "A5-A7": TaskMean(tuple(key for key, task in TASKS.items() if {"A5", "A6", "A7"} & set(task.capabilities))),
}
"""The metrics of Figure 7: overall accuracy, and accuracy on its inset's "reasoning-intensive tasks (A5-A7)" (our reading)."""


def accuracy(counts: Array) -> Array:
    """Return the share of correct answers, shape (..., conditions, tasks); nan where there is no answer."""
    right_counts, answers = counts[..., 0], counts[..., 1]
    shares: Array = np.divide(
        right_counts, answers, out=np.full(np.shape(answers), np.nan), where=np.asarray(answers) > 0
    )
    return shares


def label_metrics() -> LabelMetrics:
    """Return the accuracy over all answers under each condition, as metrics that human labels can correct."""

    def of(condition: int) -> Callable[[Any], Any]:
        def rate(counts: Array) -> Array:
            by_label = counts[..., condition, :]
            return accuracy(np.stack([by_label[..., LABELS.index("CORRECT")], by_label.sum(-1)], -1))

        return rate

    return LabelMetrics(CONDITIONS, LABELS, {f"Accuracy, {name}": of(i) for i, name in enumerate(CONDITIONS)})
