"""Bounds of a metric while answers are undecided: its least and greatest value, whatever their labels turn out to be.

Totals have shape (conditions, labels), and a metric is a function of totals as in :class:`benchmarks.base.LabelMetrics`: a ratio
of linear functions of the counts. So it has its extremes where all undecided answers of a condition get one label, and where no
other label of one condition makes it more extreme.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Labels = NDArray[np.int64]

Metric = Callable[[Any], Any]


class Extremes(NamedTuple):
    """The labels that undecided answers get where a metric is least and where it is greatest, shape (blocks,)."""

    least: Labels
    greatest: Labels


def extremes(metric: Metric, totals: Array, blocks: Sequence[tuple[float, int, int]]) -> Extremes:
    """Return the labels of the ``blocks`` at which a metric is least and greatest.

    ``totals`` has shape (..., conditions, labels), with a leading axis of runs for a difference of two. A block is a number of
    undecided answers that get one label: (count, run, condition), where run -1 stands for both runs; of these there may be some
    only if the metric :func:`is_linear`. Undefined values are left out.
    """
    import numpy as np

    def values(cases: Labels) -> Array:
        """Return the metric for cases of shape (cases, blocks)."""
        filled = np.repeat(totals[None], len(cases), axis=0)
        for place, (count, run, condition) in enumerate(blocks):
            rows = np.arange(len(cases))
            for index in range(totals.shape[0]) if run < 0 and totals.ndim == 3 else [run]:
                counts = filled[:, condition] if totals.ndim == 2 else filled[:, index, condition]
                counts[rows, cases[:, place]] += count
        result: Array = np.asarray(metric(filled), float)
        return result[:, 1] - result[:, 0] if totals.ndim == 3 else result

    labels = totals.shape[-1]
    return Extremes(*(_climb(values, labels, len(blocks), sign) for sign in (-1, 1)))


def is_linear(metric: Metric, shape: tuple[int, int]) -> bool:
    """Return whether a metric of totals of ``shape`` is linear in the labels, as shares of all answers and their differences are.

    Inferred numerically: halfway between two tables with as many answers under each condition, it is halfway too.
    """
    import numpy as np

    random = np.random.default_rng(0)
    first = random.integers(1, 60, (8, *shape)).astype(float)
    second = random.permuted(first, axis=-1)
    ends = [np.asarray(metric(totals)) for totals in (first, second)]
    return np.allclose(np.asarray(metric((first + second) / 2)), sum(ends) / 2, rtol=0)


def _climb(values: Callable[[Labels], Array], labels: int, blocks: int, sign: int) -> Labels:
    """Return the best labels, found by changing one block at a time from each start in which all blocks have one label."""
    import numpy as np

    best, best_value = np.zeros(blocks, np.int64), -np.inf
    for start in range(labels):
        case = np.full(blocks, start, np.int64)
        value, improved = -np.inf, True
        while improved:
            improved = False
            for place in range(blocks):
                cases = np.repeat(case[None], labels, axis=0)
                cases[:, place] = np.arange(labels)
                scores = np.nan_to_num(sign * values(cases), nan=-np.inf)
                if scores.max() > value + 1e-12:
                    value, case, improved = float(scores.max()), cases[scores.argmax()], True
        if value > best_value:
            best, best_value = case, value
    return best
