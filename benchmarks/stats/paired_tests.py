"""Paired comparison of two runs over the same examples: exact tests, bounds, multiple-testing correction.

The unit is the cluster (:mod:`benchmarks.stats.clusters`), since the answers to one page are correlated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from benchmarks.stats.intervals import (
    DIFFERENCE,
    SHARE,
    adjusted_difference,
    effective_size,
    score,
    student_cdf,
    student_quantile,
)
from benchmarks.vocabulary import Estimate, LabelMetrics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_SLACK = 1e-9
"""The tolerance below which two values are equal: sums in another order differ in their last bits."""
_ROUNDING = 1e-24
"""The sum of squared deviations below which they are rounding errors, whose correlation says nothing."""

_LEVELS, _FEW_SIGNS = 20, 64
"""The whole numbers to which fractions are rounded for a test of signs, and the most signs of such a test."""

_FURTHEST, _HALVINGS = 1e3, 80
"""The reach of the bisection for a p, in standard errors, and the number of its halvings."""


def paired_p(sums: Array, difference: Difference) -> float:
    """Return the two-sided p of a difference of shares: the larger of the interval's and that of :func:`sign_flip_test`.

    ``sums`` are those of the clusters. The first test fails where few clusters differ, all to one side; the second where whole
    clusters gain and single answers lose, whose signs are no fair coins.
    """
    return max(difference.p, _few_signs_p(sums))


def difference_p(value: float, variance: float, clusters: int, sums: Array) -> float:
    """Return the two-sided p of a difference that has the interval of :func:`difference_estimate`; 1 for one cluster.

    It is at least that of the signs of ``sums``, what each cluster adds to ``value``; see :func:`paired_p`.
    """
    if clusters < 2:
        return 1.0
    centre, error = adjusted_difference(value, variance, clusters)
    return max(2 * (1 - student_cdf(abs(centre) / error, clusters - 1)), _few_signs_p(sums))


def _few_signs_p(sums: Array) -> float:
    """Return the p of :func:`sign_flip_test`. Fractions are rounded to parts of the largest; many of them need no test, 0."""
    import numpy as np

    largest = float(np.abs(sums).max(initial=0.0))
    whole = np.rint(sums)
    if largest and not np.array_equal(whole, sums):
        whole = np.rint(sums / largest * _LEVELS)
        if np.count_nonzero(whole) > _FEW_SIGNS:
            return 0.0
    return sign_flip_test(whole.astype(int).tolist())


def sign_flip_test(sums: Sequence[int]) -> float:
    """Return the exact two-sided p of the sign-flip test: the probability of a total at least this far from 0.

    Under the null hypothesis each cluster's sign is a fair coin. ``sums`` are whole numbers, one for each cluster. If they are
    -1, 0 and 1, as with one paired answer per cluster, this is McNemar's exact test, the binomial test on the discordant
    pairs (McNemar 1947). It is 1 if nothing differs.
    """
    import numpy as np

    signed = np.asarray(sums, dtype=np.int64)
    signed = signed // max(
        1, int(np.gcd.reduce(signed, initial=0))
    )  # the smallest whole numbers, of which fewer are convolved
    sizes = np.abs(signed)
    probabilities = np.ones(1)
    for size in np.unique(sizes[sizes > 0]):
        count = int((sizes == size).sum())
        # The total of ``count`` signs goes from -count to count in steps of 2; here each sign weighs ``size``.
        distribution = np.zeros(2 * count * int(size) + 1)
        distribution[:: 2 * int(size)] = _coin_tosses(count)
        probabilities = np.convolve(probabilities, distribution)
    total, centre = abs(int(np.sum(signed))), len(probabilities) // 2
    # Summed over the tail rather than as 1 minus the rest, so that a small p keeps its precision.
    return min(1.0, 2 * float(probabilities[centre + total :].sum())) if total else 1.0


def _coin_tosses(tosses: int) -> Array:
    """Return the probabilities of 0 to ``tosses`` heads, shape (tosses + 1,)."""
    import numpy as np

    log = [math.lgamma(tosses + 1) - math.lgamma(k + 1) - math.lgamma(tosses - k + 1) for k in range(tosses + 1)]
    probabilities: Array = np.exp(np.array(log) - tosses * math.log(2))
    return probabilities


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
    """A difference of two shares over paired answers: the share gained less the share lost.

    The interval puts those of both shares together by the method of variance estimates recovery (Zou and Donner 2008, with the
    correlation of gains and losses over clusters), each of them :func:`share_estimate`'s. Where a share is small, its score
    interval is wide on the side that matters, so that a claim on few lost answers does not come too easily.
    """

    value: float
    gained: float
    lost: float
    effective: tuple[float, float]
    """The effective sample sizes behind ``gained`` and ``lost``."""
    correlation: float
    clusters: int
    pairs: int

    @property
    def error(self) -> float:
        """The standard error that its 95% interval amounts to."""
        low, high = self.interval()
        return (high - low) / (2 * self._quantile(0.975))

    def lower(self, confidence: float = 0.95) -> float:
        """Return the one-sided lower bound, at least -1."""
        return self._lower(self._quantile(confidence))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the two-sided interval, within [-1, 1]; all of it for one cluster, which says nothing of others."""
        z = self._quantile((1 + confidence) / 2)
        return self._lower(z), self._lower(-z)

    @property
    def estimate(self) -> Estimate:
        """The difference with its 95% interval; it has none for one cluster."""
        low, high = self.interval() if self.clusters > 1 else (None, None)
        return Estimate(self.value, low, high, self.pairs)

    @property
    def p(self) -> float:
        """The two-sided p of no difference that its interval amounts to."""
        if self.clusters < 2 or not self.value:
            return 1.0
        below = self.non_inferiority_p(0.0)
        return min(1.0, 2 * min(below, 1 - below))

    def non_inferiority_p(self, margin: float) -> float:
        """Return the one-sided p of the null hypothesis that the true difference is at most -``margin``."""
        return 1 - student_cdf(self._reach(-margin), self.clusters - 1) if self.clusters > 1 else 1.0

    def reversed(self) -> Difference:
        """Return the difference the other way round."""
        gained, lost = self.effective
        return replace(self, value=-self.value, gained=self.lost, lost=self.gained, effective=(lost, gained))

    def repeated(self, times: float) -> Difference:
        """Return the difference as of so many times the clusters, with the same shares gained and lost."""
        gained, lost = self.effective
        size = round(self.clusters * times), round(self.pairs * times)
        return replace(self, effective=(gained * times, lost * times), clusters=size[0], pairs=size[1])

    def _quantile(self, confidence: float) -> float:
        quantile = student_quantile(max(confidence, 1 - confidence), max(1, self.clusters - 1))
        return quantile if confidence >= 0.5 else -quantile

    def _lower(self, z: float) -> float:
        """Return the lower bound at ``z`` standard errors; the upper one if ``z`` is negative."""
        if self.clusters < 2:
            return -math.copysign(1.0, z)
        gained, lost = (
            score(share, size, self.pairs, abs(z))
            for share, size in zip((self.gained, self.lost), self.effective, strict=True)
        )
        (below, above), (fewer, more) = _reaches(gained), _reaches(lost)
        down, up = (below, more) if z >= 0 else (above, fewer)
        reach = math.sqrt(max(0.0, down * down + up * up - 2 * self.correlation * down * up))
        return max(-1.0, min(1.0, self.value - math.copysign(reach, z)))

    def _reach(self, bound: float) -> float:
        """Return the number of standard errors at which the lower bound is ``bound``."""
        low, high = -_FURTHEST, _FURTHEST
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._lower(middle) > bound else (low, middle)
        return high


def _reaches(share: Estimate) -> tuple[float, float]:
    """Return how far an interval reaches below and above its value."""
    assert share.value is not None
    assert share.low is not None
    assert share.high is not None
    return share.value - share.low, share.high - share.value


def share_difference(gains: Array, losses: Array, sizes: Array, clusters: int | None = None) -> Difference | None:
    """Return the difference of two shares, of clusters with these gains, losses and numbers of pairs; None without pairs.

    All have shape (clusters,): what the second run has over the first, what it has less, both 0 or more. ``clusters`` is as for
    :func:`clustered_wilson`.
    """
    import numpy as np

    pairs = float(np.sum(sizes))
    if pairs <= 0:
        return None
    clusters = int((np.asarray(sizes) > 0).sum()) if clusters is None else clusters
    shares, effective, deviations = [], [], []
    for sums in (gains, losses):
        share = min(1.0, max(0.0, float(np.sum(sums)) / pairs))
        deviation = (sums - share * sizes) / pairs
        shares.append(share)
        deviations.append(deviation)
        variance = float((deviation**2).sum())
        effective.append(effective_size(share, variance, clusters, pairs) if clusters > 1 else 1.0)
    squares = [float((deviation**2).sum()) for deviation in deviations]
    product = float((deviations[0] * deviations[1]).sum())
    correlation = product / math.sqrt(squares[0] * squares[1]) if min(squares) > _ROUNDING else 0.0
    gained, lost = shares
    return Difference(gained - lost, gained, lost, (effective[0], effective[1]), correlation, clusters, round(pairs))


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
def metric_range(metric: Callable[[Any], Any], metrics: LabelMetrics) -> tuple[float, float] | None:
    """Return the range of a metric, for :func:`estimate`: that of a share, or of a difference of shares; None for any other.

    It is inferred numerically, from random counts and from such in which every condition has a single label.
    """
    import numpy as np

    shape = (len(metrics.conditions), len(metrics.labels))
    random = np.random.default_rng(0)
    one_label = np.eye(shape[1])[random.integers(shape[1], size=(512, shape[0]))]
    values = np.asarray(metric(np.concatenate([one_label + 1e-6, random.integers(1, 60, (64, *shape))])), float)
    least, greatest = float(values.min()), float(values.max())
    if least >= -_SLACK and greatest <= 1 + _SLACK:
        return SHARE
    return DIFFERENCE if least >= -1 - _SLACK and greatest <= 1 + _SLACK else None


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
