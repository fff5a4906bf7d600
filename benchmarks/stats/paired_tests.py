"""Paired comparison of two runs over the same examples: exact and permutation tests, bounds, multiple-testing correction.

The unit is the group (example), since the answers under an example's conditions are correlated. ``sums`` are the groups'
differences and ``sizes`` their numbers of paired answers, both of shape (groups,).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from benchmarks.base import LabelMetrics
from benchmarks.stats.intervals import distinct_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_NORMAL = NormalDist()
_SLACK = 1e-9
"""The tolerance below which two values are equal: sums in another order differ in their last bits."""

_SHARED = 2**24
"""The greatest number of coin tosses that is kept for the next pair of runs, 32 MiB."""


def sign_flip_test(sums: Sequence[int]) -> float:
    """Return the exact two-sided p of the sign-flip test: the probability of a total at least this far from 0.

    Under the null hypothesis each group's sign is a fair coin. ``sums`` are whole numbers, one for each group. If they are
    -1, 0 and 1, as with one paired answer per group, this is McNemar's exact test, the binomial test on the discordant
    pairs (McNemar 1947). It is 1 if nothing differs.
    """
    import numpy as np

    sizes = np.abs(np.asarray(sums, dtype=np.int64))
    probabilities = np.ones(1)
    for size in np.unique(sizes[sizes > 0]):
        count = int((sizes == size).sum())
        # The total of ``count`` signs goes from -count to count in steps of 2; here each sign weighs ``size``.
        distribution = np.zeros(2 * count * int(size) + 1)
        distribution[:: 2 * int(size)] = _coin_tosses(count)
        probabilities = np.convolve(probabilities, distribution)
    total, centre = abs(int(np.sum(sums))), len(probabilities) // 2
    # Summed over the tail rather than as 1 minus the rest, so that a small p keeps its precision.
    return min(1.0, 2 * float(probabilities[centre + total :].sum())) if total else 1.0


def _coin_tosses(tosses: int) -> Array:
    """Return the probabilities of 0 to ``tosses`` heads, shape (tosses + 1,)."""
    import numpy as np

    log = [math.lgamma(tosses + 1) - math.lgamma(k + 1) - math.lgamma(tosses - k + 1) for k in range(tosses + 1)]
    probabilities: Array = np.exp(np.array(log) - tosses * math.log(2))
    return probabilities


def permuted_totals(counts: Array, *, draws: int = 9_999, seed: int = 0) -> Array:
    """Return ``draws`` permutations of two runs' totals, with the two runs exchanged in each group by a fair coin.

    ``counts`` has shape (groups, 2, *cells), the result (draws, 2, *cells).
    """
    import numpy as np

    groups, cells = counts.shape[0], counts.shape[2:]
    kinds, size = distinct_rows((counts[:, 1] - counts[:, 0]).reshape(groups, -1))
    if draws * groups <= _SHARED:
        ends, heads = np.cumsum(size), _summed_heads(groups, draws, seed)
        exchanged_groups = (heads[ends] - heads[ends - size]).T
    else:
        exchanged_groups = np.random.default_rng(seed).binomial(size, 0.5, size=(draws, len(size)))
    exchanged = exchanged_groups.astype(float) @ kinds
    totals = counts.sum(0, dtype=float).reshape(2, -1)
    return np.stack([totals[0] + exchanged, totals[1] - exchanged], 1).reshape(draws, 2, *cells)


@lru_cache(maxsize=2)
def _summed_heads(groups: int, draws: int, seed: int) -> NDArray[np.int16]:
    """Return in each draw the number of heads of the first coins, none to all; shape (groups + 1, draws).

    All pairs of runs with as many groups share this draw.
    """
    import numpy as np

    coins = np.random.default_rng(seed).integers(2, size=(groups, draws), dtype=np.int8)
    sums = np.zeros((groups + 1, draws), dtype=np.int16)
    np.cumsum(coins, axis=0, out=sums[1:])
    sums.flags.writeable = False
    return sums


def permutation_test(counts: Array, permuted: Array, metric: Callable[[Array], Array]) -> float | None:
    """Return the two-sided p of the permutation test on the difference of a metric between two runs.

    ``permuted`` are the :func:`permuted_totals` of ``counts``. ``metric`` takes counts of shape (..., *cells) and returns
    shape (...). p is (1 + draws at least as extreme as the observed difference) / (1 + draws) (Phipson and Smyth 2010).
    A draw in which the metric is undefined counts as extreme. Return None if the observed difference is undefined.
    """
    import numpy as np

    before, after = np.asarray(metric(counts.sum(0, dtype=float)))
    observed = float(after - before)
    if math.isnan(observed):
        return None
    values = np.asarray(metric(permuted))
    differences = values[:, 1] - values[:, 0]
    extreme = int((np.isnan(differences) | (np.abs(differences) >= abs(observed) - _SLACK)).sum())
    return (1 + extreme) / (1 + len(differences))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p values corrected by Holm's step-down method (Holm 1979), in their order; None stays None and is not counted."""
    ascending = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    minimum = 0.0
    for rank, (p, i) in enumerate(ascending):
        minimum = max(minimum, min(1.0, p * (len(ascending) - rank)))
        corrected[i] = minimum
    return corrected


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two shares over paired answers, with the centre and standard error of its interval.

    ``value`` is the plain difference. ``centre`` and ``error`` are those of Bonett and Price's adjusted interval (2012),
    which adds two groups: one in which only the first run is correct, one in which only the second is. With one answer per
    group this is their formula; with more, the variance is that of a linearised ratio between groups. The added groups keep
    the interval wide when few answers all agree.
    """

    value: float
    centre: float
    error: float
    groups: int

    def lower(self, confidence: float = 0.95) -> float:
        """Return the one-sided lower bound, at least -1."""
        return max(-1.0, self.centre - _NORMAL.inv_cdf(confidence) * self.error)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the two-sided interval, within [-1, 1]."""
        half_width = _NORMAL.inv_cdf((1 + confidence) / 2) * self.error
        return max(-1.0, self.centre - half_width), min(1.0, self.centre + half_width)

    def non_inferiority_p(self, margin: float) -> float:
        """Return the one-sided p of the null hypothesis that the true difference is at most -``margin``."""
        return 1 - _NORMAL.cdf((self.centre + margin) / self.error)

    def groups_needed(self, error: float) -> int:
        """Return the number of groups like these that reduces the standard error to ``error``.

        The error of N groups with variance v is sqrt(N v + 2) / (N + 2), in units of a group's size.
        """
        variance = max(0.0, ((self.error * (self.groups + 2)) ** 2 - 2) / self.groups)
        root = math.sqrt(max(0.0, variance**2 - 8 * error**2 * (variance - 1)))
        return max(1, math.ceil((variance + root) / (2 * error**2) - 2 - _SLACK))


def share_difference(sums: Array, sizes: Array) -> Difference | None:
    """Return the difference of two shares; ``sums`` are the second run's hits minus the first one's. None without pairs."""
    import numpy as np

    groups, pairs = len(sizes), float(np.sum(sizes))
    if not pairs:
        return None
    mean = pairs / groups
    total = float(np.sum(sums))
    centre = total / (pairs + 2 * mean)
    residuals = np.concatenate([sums - centre * sizes, [mean - centre * mean, -mean - centre * mean]])
    error = math.sqrt(float((residuals**2).sum())) / (pairs + 2 * mean)
    return Difference(total / pairs, centre, error, groups)


@lru_cache(maxsize=256)
def share_labels(metric: Callable[[Any], Any], metrics: LabelMetrics) -> NDArray[np.bool_] | None:
    """Return the labels that a metric counts as hits, shape (conditions, labels), if it is a share of all answers.

    The share may be over some of the conditions; the other conditions are all False. Return None for any other metric, such
    as a share of some labels or a difference. The labels are inferred numerically: adding an answer under a counted condition
    raises or lowers a share of all answers, and random counts then confirm that the metric is the share of these labels.
    """
    import numpy as np

    shape = (len(metrics.conditions), len(metrics.labels))
    random = np.random.default_rng(0)
    counts = random.integers(5, 50, shape).astype(float)
    incremented = counts + np.eye(shape[0] * shape[1]).reshape(-1, *shape)
    value = float(metric(counts))
    hits = (np.asarray(metric(incremented)) - value > _SLACK).reshape(shape)
    used_labels = (np.abs(np.asarray(metric(incremented)) - value) > _SLACK).reshape(shape).any(1)
    if not hits.any() or not np.array_equal(hits.any(1), used_labels):
        return None
    trials = random.integers(1, 60, (8, *shape)).astype(float)
    shares = (trials * hits).sum((1, 2)) / trials[:, used_labels].sum((1, 2))
    return hits if np.allclose(np.asarray(metric(trials)), shares, atol=_SLACK, rtol=0) else None


@lru_cache(maxsize=256)
def contributing_labels(metric: Callable[[Any], Any], metrics: LabelMetrics) -> NDArray[np.bool_]:
    """Return the labels whose counts change a metric, shape (conditions, labels), inferred as in :func:`share_labels`."""
    import numpy as np

    shape = (len(metrics.conditions), len(metrics.labels))
    counts = np.random.default_rng(0).integers(5, 50, shape).astype(float)
    incremented = counts + np.eye(shape[0] * shape[1]).reshape(-1, *shape)
    changes: NDArray[np.bool_] = np.abs(np.asarray(metric(incremented)) - float(metric(counts))) > _SLACK
    return changes.reshape(shape)


def hypothesis_numbers(names: Sequence[str], metrics: LabelMetrics) -> list[int]:
    """Return for each metric the number of the hypothesis that its difference tests.

    Two metrics that always add up to a constant, such as CMC-Bench's MPB Img and MPB Txt, test one hypothesis and have equal
    numbers. They are recognised numerically: over random counts, their differences are equal except for the sign.
    """
    import numpy as np

    shape = (len(metrics.conditions), len(metrics.labels))
    counts = np.random.default_rng(0).integers(1, 60, (8, 2, *shape)).astype(float)
    distinct_arrays: list[Array] = []
    numbers: list[int] = []
    for name in names:
        values = np.asarray(metrics.of[name](counts), float)
        difference: Array = values[:, 1] - values[:, 0]
        is_equal = (
            i
            for i, other in enumerate(distinct_arrays)
            if any(np.allclose(difference, sign * other, atol=_SLACK, rtol=0) for sign in (1, -1))
        )
        number = next(is_equal, len(distinct_arrays))
        if number == len(distinct_arrays):
            distinct_arrays.append(difference)
        numbers.append(number)
    return numbers


def holm_by_hypothesis(p_values: Sequence[float | None], hypotheses: Sequence[Any]) -> list[float | None]:
    """Return p values corrected by :func:`holm`, where each distinct hypothesis counts once, with its largest p value."""
    largest: dict[Any, float] = {}
    for p, hypothesis in zip(p_values, hypotheses, strict=True):
        if p is not None:
            largest[hypothesis] = max(p, largest.get(hypothesis, 0.0))
    corrected = dict(zip(largest, holm(list(largest.values())), strict=True))
    return [None if p is None else corrected[hypothesis] for p, hypothesis in zip(p_values, hypotheses, strict=True)]
