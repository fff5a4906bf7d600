"""The paper's figures, as functions of counts of answers.

Counts have shape (..., conditions, tasks, 2), in the order of ``terms.CONDITIONS`` and ``terms.TASKS``: how many answers are
right, and how many there are. :func:`accuracy` makes (..., conditions, tasks) of them, and a :class:`TaskMean` of one condition's
accuracies, (..., tasks), makes (...). What is undefined is nan: a mean over fewer tasks would be another figure.
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

KEYS = tuple(TASKS)


@dataclass(frozen=True, slots=True)
class TaskMean:
    """The unweighted mean of the accuracies of ``tasks``, less that of the task ``less``, if one is named."""

    tasks: tuple[str, ...]
    less: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """All tasks without which it is undefined."""
        return (*self.tasks, self.less) if self.less else self.tasks

    def __call__(self, accuracies: Array) -> Array:
        if not self.tasks:
            return np.full(accuracies.shape[:-1], np.nan)
        found: Array = accuracies[..., [KEYS.index(task) for task in self.tasks]].mean(-1)
        return found - accuracies[..., KEYS.index(self.less)] if self.less else found


MAIN: Mapping[str, TaskMean] = {"Avg.": TaskMean(KEYS), **{key: TaskMean((key,)) for key in KEYS}}
"""Table 1."""

BY_LEVEL: Mapping[str, TaskMean] = {
    f"{level} {name}": TaskMean(tuple(key for key, task in TASKS.items() if task.level == level))
    for level, name in LEVELS.items()
}

BY_CAPABILITY: Mapping[str, TaskMean] = {
    capability: TaskMean(tuple(key for key, task in TASKS.items() if capability in task.capabilities))
    for capability in CAPABILITIES
}
"""Over the tasks that need a capability (our reading of Figure 5; no task needs A7 alone)."""

ALONE: Mapping[str, TaskMean] = {
    capability: TaskMean(tuple(key for key, task in TASKS.items() if task.capabilities == (capability,)))
    for capability in CAPABILITIES
}
"""By the one task that needs nothing else: Ovis2-8B's 36.6% "on A5" is its SP. A7 has no such task."""

_PAIRS = {"BR": ("BR*",), "SPU": ("SKU",), "BDC": ("PI", "BI", "BI*")}
"""Table 2: atomic variants with the compositional ones that add capabilities to them."""

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
"""Table 2; a drop is positive where the compositional task is the worse one."""

INTERVENTIONS: Mapping[str, TaskMean] = {
    "A5: Numeric": BY_CAPABILITY["A5"],
    "A6: OCR": BY_CAPABILITY["A6"],
    "A7: Logic": BY_CAPABILITY["A7"],
}
"""Table 3's columns, over the tasks that need each capability (our reading)."""


def accuracy(counts: Array) -> Array:
    """The share of answers that are right, shape (..., conditions, tasks); nan where there is none."""
    right, whole = counts[..., 0], counts[..., 1]
    found: Array = np.divide(right, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) > 0)
    return found


def figures() -> LabelMetrics:
    """Accuracy over all answers under each condition: for correcting it by labels given by people."""

    def of(condition: int) -> Callable[[Any], Any]:
        def rate(counts: Array) -> Array:
            each = counts[..., condition, :]
            return accuracy(np.stack([each[..., LABELS.index("CORRECT")], each.sum(-1)], -1))

        return rate

    return LabelMetrics(CONDITIONS, LABELS, {f"Accuracy, {name}": of(i) for i, name in enumerate(CONDITIONS)})
