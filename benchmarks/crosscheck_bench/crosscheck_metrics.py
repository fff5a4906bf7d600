"""The paper's metrics, as functions of counts of answers.

Counts have shape (..., conditions, tasks, states), in the order of ``constants.CONDITIONS``, ``constants.TASKS`` and
:data:`STATES`. :func:`accuracy` turns them into (..., conditions, tasks), and a :class:`TaskMean` turns the accuracies of one
condition, (..., tasks), into (...). Undefined values are nan: a mean over fewer tasks would be another metric.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.crosscheck_bench.crosscheck_constants import CAPABILITIES, CONDITIONS, LABELS, LEVELS, TASKS
from benchmarks.stats.intervals import ratio
from benchmarks.vocabulary import LabelMetrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

TASK_KEYS = tuple(TASKS)
STATES = (*LABELS, "not counted")
"""The states of a question that was asked; an answer in error or without a label is not counted."""


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


def answered(counts: Array) -> Array:
    """Return the number of answers that count, shape (..., conditions, tasks)."""
    answers: Array = counts[..., : len(LABELS)].sum(-1)
    return answers


def accuracy(counts: Array) -> Array:
    """Return the share of correct answers, shape (..., conditions, tasks); nan where there is no answer."""
    return ratio(counts[..., STATES.index("CORRECT")], answered(counts))


def label_metrics() -> LabelMetrics:
    """Return the accuracy over all answers under each condition, as metrics that human labels can correct."""

    def of(condition: int) -> Callable[[Array], Array]:
        return lambda counts: accuracy(counts[..., condition, :])

    return LabelMetrics(CONDITIONS, LABELS, {f"Accuracy, {name}": of(i) for i, name in enumerate(CONDITIONS)})
