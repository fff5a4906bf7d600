"""Bounds of a metric while answers are undecided: its least and greatest value, whatever their labels turn out to be.

Totals have shape (conditions, labels). A metric is a function of totals as in :class:`benchmarks.base.LabelMetrics`: a sum of
ratios of linear functions of the counts, so its extremes lie where all undecided answers of a condition get one label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Labels = NDArray[np.int64]

Metric = Callable[[Any], Any]

_MOST_CASES = 200_000
"""The number of cases that are tried one by one; beyond it, conditions are decided in turn until nothing changes."""


class Extremes(NamedTuple):
    """The labels that undecided answers get where a metric is least and where it is greatest, shape (blocks,)."""

    least: Labels
    greatest: Labels


def extremes(metric: Metric, totals: Array, blocks: Sequence[tuple[float, int, int]]) -> Extremes:
    """Return the labels of the ``blocks`` at which a metric is least and greatest.

    ``totals`` has shape (..., conditions, labels), with a leading axis of runs for a difference of two. A block is a number of
    undecided answers that get one label: (count, run, condition), where run -1 stands for both runs. Undefined values are left
    out.
    """
    import numpy as np

    labels = totals.shape[-1]

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

    if labels ** len(blocks) <= _MOST_CASES:
        cases = np.array(list(product(range(labels), repeat=len(blocks))), np.int64)
        known = values(cases)
        defined = ~np.isnan(known)
        if not defined.any():
            return Extremes(cases[0], cases[0])
        cases, known = cases[defined], known[defined]
        return Extremes(cases[known.argmin()], cases[known.argmax()])
    return Extremes(_climb(values, labels, len(blocks), -1), _climb(values, labels, len(blocks), 1))


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


def filled(totals: Array, blocks: Sequence[tuple[float, int, int]], labels: Labels) -> Array:
    """Return ``totals`` with every block's answers counted under its label."""
    result: Array = totals.astype(float).copy()
    for (count, run, condition), label in zip(blocks, labels.tolist(), strict=True):
        if totals.ndim == 2:
            result[condition, label] += count
        else:
            for index in range(totals.shape[0]) if run < 0 else [run]:
                result[index, condition, label] += count
    return result
