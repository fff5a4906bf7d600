"""Confidence intervals (closed-form for running counts, cluster bootstrap for tables) and chance-corrected agreement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.vocabulary import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.integer] | NDArray[np.floating]

_PRIOR_ANSWERS = 4
"""The number of answers by which a stratum's share is shrunk towards the mean of all strata."""

_CHUNK = 1024 * 1024
"""The number of bootstrap weights held at a time, 8 MiB."""

_SHARED = 1024 * 1024
"""The greatest number of bootstrap weights that is kept for the next table, 4 MiB."""


def span(low: str, high: str) -> str:
    """Return the printed ends of an interval as a range, or as one value if they read the same."""
    return low if low == high else f"{low} to {high}"


def wilson(successes: float, n: int, confidence: float = 0.95) -> Estimate:
    """Return the proportion ``successes / n`` with Wilson's score interval (Wilson 1927); n/a if ``n`` is 0."""
    return _score(successes / n, n, n, confidence) if n else Estimate(None, reason="no answers")


def clustered_wilson(successes: Sequence[float], sizes: Sequence[int], confidence: float = 0.95) -> Estimate:
    """Return the proportion over all answers with Wilson's score interval for answers that are correlated within groups.

    ``successes`` and ``sizes`` have shape (groups,). The formula's n is the effective sample size (n over the design effect,
    Kish 1965, section 8.2), at most the number of answers; if all answers are equal, it is the number of groups. With one
    answer per group this is :func:`wilson`.
    """
    n, groups = sum(sizes), sum(size > 0 for size in sizes)
    if n == 0:
        return Estimate(None, reason="no answers")
    p = sum(successes) / n
    spread = sum((hits - p * size) ** 2 for hits, size in zip(successes, sizes, strict=True))
    effective = min(n, n * n * p * (1 - p) / spread) if spread else groups if p in (0, 1) else n
    return _score(p, effective, n, confidence)


class ClusterSums(NamedTuple):
    """Sums over groups of their successes, their sizes, and the products of these; groups without an answer do not count."""

    groups: int = 0
    successes: int = 0
    sizes: int = 0
    successes_squared: int = 0
    products: int = 0
    sizes_squared: int = 0

    def plus(self, other: ClusterSums, times: int = 1) -> ClusterSums:
        """Return the sums over the groups of both, with those of ``other`` counted ``times`` times."""
        return ClusterSums(*(own + times * more for own, more in zip(self, other, strict=True)))

    def wilson(self, confidence: float = 0.95) -> Estimate:
        """Return :func:`clustered_wilson` of the groups. The sums are whole numbers, so the spread has no rounding errors."""
        n = self.sizes
        if n == 0:
            return Estimate(None, reason="no answers")
        p = self.successes / n
        spread = (
            n * n * self.successes_squared
            - 2 * n * self.successes * self.products
            + self.successes * self.successes * self.sizes_squared
        ) / (n * n)
        effective = min(n, n * n * p * (1 - p) / spread) if spread else self.groups if p in (0, 1) else n
        return _score(p, effective, n, confidence)


def _score(p: float, effective: float, answers: int, confidence: float) -> Estimate:
    """Return the proportion ``p`` with the score interval of a sample of ``effective`` size; n is ``answers``."""
    n, z = effective, NormalDist().inv_cdf((1 + confidence) / 2)
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half_width = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return Estimate(p, min(p, max(0.0, centre - half_width)), max(p, min(1.0, centre + half_width)), answers)


def macro_average(hits: Sequence[int], sizes: Sequence[int], confidence: float = 0.95) -> Estimate:
    """Return the unweighted mean of the strata's shares ``hits / sizes`` with a score interval; n is the number of answers.

    The n of Wilson's formula is that of a simple random sample whose share has the variance of this mean (Kish 1965, section
    8.2). A stratum's variance is that of its share after shrinking it towards the mean by z^2 = 4 answers, as Agresti and
    Coull (1998) shrink theirs towards one half, so that a stratum with one answer or with equal answers does not count as
    certain. For one stratum this is :func:`wilson`. n/a if any stratum has no answer.
    """
    if not all(sizes):
        return Estimate(None, n=sum(sizes), reason="no answers")
    weight = 1 / len(sizes)
    p = sum(hit / size for hit, size in zip(hits, sizes, strict=True)) * weight
    if 0 < p < 1:
        shrunk = [(hit + _PRIOR_ANSWERS * p) / (size + _PRIOR_ANSWERS) for hit, size in zip(hits, sizes, strict=True)]
        variance = sum(weight**2 * share * (1 - share) / size for share, size in zip(shrunk, sizes, strict=True))
        effective = p * (1 - p) / variance
    else:
        effective = 1 / sum(weight**2 / size for size in sizes)
    return _score(p, effective, sum(sizes), confidence)


def independent_difference(first: Estimate, second: Estimate) -> Estimate:
    """Return ``first`` minus ``second``, two independent estimates; it has an interval if both of them have one.

    For shares with Wilson's intervals it is Newcombe's hybrid score interval (1998, method 10), for other estimates Zou and
    Donner's (2008). n is the sum of both.
    """
    n = first.n + second.n
    if first.value is None or second.value is None:
        return Estimate(None, n=n, reason=first.reason or second.reason)
    difference = first.value - second.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Estimate(difference, n=n)
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    return Estimate(difference, difference - below, difference + above, n)


def resample(counts: Counts, resamples: int, seed: int) -> NDArray[np.float64]:
    """Return bootstrap totals of ``counts``: all groups are resampled with replacement, ``resamples`` times.

    ``counts`` has shape (groups, *cells), the result (resamples, *cells). Groups with equal counts are drawn by one
    multinomial count, which leaves the distribution unchanged and bounds time and memory by the number of distinct groups.
    Fewer than two groups have no variance and give no resamples.
    """
    import numpy as np

    groups, cells = counts.shape[0], counts.shape[1:]
    if groups < 2 or resamples < 1:
        return np.zeros((0, *cells))
    kinds, size = distinct_rows(counts.reshape(groups, -1))
    if resamples * groups <= _SHARED:
        totals: NDArray[np.float64] = _kind_weights(size, resamples, seed) @ kinds.astype(np.float64)
    else:
        random = np.random.default_rng(seed)
        chunk = max(1, _CHUNK // len(kinds))
        totals = np.empty((resamples, kinds.shape[1]))
        for start in range(0, resamples, chunk):
            weights = random.multinomial(groups, size / groups, size=min(chunk, resamples - start))
            totals[start : start + chunk] = weights.astype(np.float64) @ kinds
    return totals.reshape(resamples, *cells)


def distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct rows in ascending order, and how often each occurs: ``np.unique`` with ``axis=0``.

    Rows of small whole numbers are compared as bytes, which takes a tenth of the time.
    """
    import numpy as np

    if rows.size and rows.max() - (low := min(0, rows.min())) <= 255:
        positive = rows - low if low else rows
        as_bytes = np.ascontiguousarray(positive.astype(np.uint8))
        if (as_bytes == positive).all():
            _, first, size = np.unique(
                as_bytes.view(f"V{rows.shape[1]}").ravel(), return_index=True, return_counts=True
            )
            return rows[first], size
    distinct, size = np.unique(rows, axis=0, return_counts=True)
    return distinct, size


def _kind_weights(size: NDArray[np.int64], resamples: int, seed: int) -> NDArray[np.float64]:
    """Return bootstrap weights of shape (resamples, kinds), for kinds of ``size`` groups each."""
    import numpy as np

    ends = np.cumsum(size)
    sums = _summed_weights(int(ends[-1]), resamples, seed)
    weights: NDArray[np.float64] = (sums[ends] - sums[ends - size]).T.astype(np.float64)
    return weights


@lru_cache(maxsize=8)
def _summed_weights(groups: int, resamples: int, seed: int) -> NDArray[np.int32]:
    """Return how often each resample draws one of the first groups, none to all; shape (groups + 1, resamples).

    All tables with as many groups share this draw, whatever they count.
    """
    import numpy as np

    drawn = np.random.default_rng(seed).integers(groups, size=(groups, resamples))
    weights = np.bincount((drawn * resamples + np.arange(resamples)).ravel(), minlength=groups * resamples)
    sums = np.zeros((groups + 1, resamples), dtype=np.int32)
    np.cumsum(weights.reshape(groups, resamples), axis=0, out=sums[1:])
    sums.flags.writeable = False
    return sums


def estimate(
    value: float, replicates: NDArray[np.float64], n: int, *, reason: str = "", confidence: float = 0.95
) -> Estimate:
    """Return a metric's value with the percentile interval of its bootstrap ``replicates``, shape (resamples,).

    A ``value`` of nan gives n/a with ``reason``. The interval ignores replicates that are nan.
    """
    import numpy as np

    if math.isnan(value):
        return Estimate(None, n=n, reason=reason or "undefined: it would divide by zero")
    defined = np.sort(replicates)  # nan comes last
    defined = defined[: len(defined) - int(np.isnan(defined).sum())]
    if not defined.size:
        return Estimate(float(value), n=n)
    tail = (1 - confidence) / 2
    return Estimate(float(value), _quantile(defined, tail), _quantile(defined, 1 - tail), n)


def _quantile(ascending: NDArray[np.float64], share: float) -> float:
    """Return what :func:`numpy.quantile` returns of values in ascending order, in a hundredth of its time."""
    place = (len(ascending) - 1) * share
    below = math.floor(place)
    low, high = float(ascending[below]), float(ascending[min(below + 1, len(ascending) - 1)])
    part = place - below
    return high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part


def cohen_kappa(counts: Array) -> Array:
    """Return Cohen's kappa (Cohen 1960, equation 1); counts of shape (..., labels, labels) give shape (...).

    It is nan without answers, and if only one label occurs, so that chance agreement is 1.
    """
    n = counts.sum((-1, -2))
    by_chance = (counts.sum(-1) * counts.sum(-2)).sum(-1)
    # In whole numbers, so that a chance agreement of 1 is exact.
    return ratio(n * diagonal(counts).sum(-1) - by_chance, n * n - by_chance)


def diagonal(counts: Array) -> Array:
    """Return the counts of equal labels; shape (..., labels, labels) gives (..., labels)."""
    import numpy as np

    agreements: Array = np.diagonal(counts, axis1=-2, axis2=-1)
    return agreements


def ratio(part: Array, whole: Array) -> Array:
    """Return ``part / whole``, nan where ``whole`` is 0; the shapes are broadcast."""
    import numpy as np

    part, whole = np.broadcast_arrays(np.asarray(part, float), np.asarray(whole, float))
    quotient: Array = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return quotient
