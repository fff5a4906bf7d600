"""Intervals (closed-form ones for a running count, the cluster bootstrap for tables), and agreement beyond chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

from benchmarks.base import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.integer] | NDArray[np.floating]

_DRAWN = 4
"""Answers by which a stratum's share is drawn towards the mean of all."""

# 32 MiB of weights at a time.
_CHUNK = 4 * 1024 * 1024


def wilson(successes: int, n: int, confidence: float = 0.95) -> Estimate:
    """The proportion ``successes / n`` with Wilson's score interval (Wilson 1927); n/a where ``n`` is 0."""
    return _score(successes / n, n, n, confidence) if n else Estimate(None, reason="no answers")


def wilson_of_groups(successes: Sequence[float], sizes: Sequence[int], confidence: float = 0.95) -> Estimate:
    """The proportion of all answers with Wilson's score interval, where answers of one group hang together.

    ``successes`` and ``sizes`` have shape (groups,). n of the formula is the number of independent answers that would vary as
    the groups do (n over the design effect, Kish 1965, section 8.2), at most that of all answers; where all of them are alike,
    the number of groups. With one answer a group it is :func:`wilson`.
    """
    n, groups = sum(sizes), sum(size > 0 for size in sizes)
    if n == 0:
        return Estimate(None, reason="no answers")
    p = sum(successes) / n
    apart = sum((hits - p * size) ** 2 for hits, size in zip(successes, sizes, strict=True))
    effective = min(n, n * n * p * (1 - p) / apart) if apart else groups if p in (0, 1) else n
    return _score(p, effective, n, confidence)


def _score(p: float, effective: float, answers: int, confidence: float) -> Estimate:
    n, z = effective, NormalDist().inv_cdf((1 + confidence) / 2)
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return Estimate(p, min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half)), answers)


def mean_of_shares(hits: Sequence[int], sizes: Sequence[int], confidence: float = 0.95) -> Estimate:
    """The unweighted mean of the shares ``hits / sizes`` of strata, with a score interval; n is the number of answers.

    n of Wilson's formula is that of a simple sample whose share varies as much as this mean does (Kish 1965, section 8.2).
    The variance of a stratum is that of its share drawn towards the mean by z^2 = 4 answers, as Agresti and Coull (1998)
    draw theirs to one half, so that one answer in a stratum, or answers that are all alike, do not count as certain. Of one
    stratum it is :func:`wilson`. n/a where a stratum has no answer.
    """
    if not all(sizes):
        return Estimate(None, n=sum(sizes), reason="no answers")
    weight = 1 / len(sizes)
    p = sum(hit / size for hit, size in zip(hits, sizes, strict=True)) * weight
    if 0 < p < 1:
        drawn = [(hit + _DRAWN * p) / (size + _DRAWN) for hit, size in zip(hits, sizes, strict=True)]
        variance = sum(weight**2 * share * (1 - share) / size for share, size in zip(drawn, sizes, strict=True))
        effective = p * (1 - p) / variance
    else:
        effective = 1 / sum(weight**2 / size for size in sizes)
    return _score(p, effective, sum(sizes), confidence)


def difference_of(first: Estimate, second: Estimate) -> Estimate:
    """``first`` less ``second``, two independent estimates, with an interval made of theirs; none where one has none.

    Of shares with Wilson's intervals that is Newcombe's hybrid score interval (1998, method 10); of others Zou and Donner's
    (2008). n is the sum of both.
    """
    n = first.n + second.n
    if first.value is None or second.value is None:
        return Estimate(None, n=n, reason=first.reason or second.reason)
    apart = first.value - second.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Estimate(apart, n=n)
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    return Estimate(apart, apart - below, apart + above, n)


def resample(counts: Counts, resamples: int, seed: int) -> NDArray[np.float64]:
    """Bootstrap totals of ``counts``: groups drawn with replacement, as many as there are, ``resamples`` times.

    ``counts`` has shape (groups, *cells); the result (resamples, *cells). Groups with the same counts are drawn
    together, which changes nothing in distribution, so neither the groups' order nor their number matters much to time
    and memory. Fewer than two groups vary in nothing and give no resamples.
    """
    import numpy as np

    groups, cells = counts.shape[0], counts.shape[1:]
    if groups < 2 or resamples < 1:
        return np.zeros((0, *cells))
    kinds, size = np.unique(counts.reshape(groups, -1), axis=0, return_counts=True)
    random = np.random.default_rng(seed)
    chunk = max(1, _CHUNK // len(kinds))
    totals = np.empty((resamples, kinds.shape[1]))
    for start in range(0, resamples, chunk):
        weights = random.multinomial(groups, size / groups, size=min(chunk, resamples - start))
        totals[start : start + chunk] = weights.astype(np.float64) @ kinds
    return totals.reshape(resamples, *cells)


def estimate(
    value: float, replicates: NDArray[np.float64], n: int, *, reason: str = "", confidence: float = 0.95
) -> Estimate:
    """A figure with the percentile interval of its bootstrap ``replicates`` (shape (resamples,)).

    A ``value`` that is nan gives n/a with ``reason``. Replicates that are nan are left out of the interval.
    """
    import numpy as np

    if math.isnan(value):
        return Estimate(None, n=n, reason=reason or "undefined: it would divide by zero")
    defined = replicates[~np.isnan(replicates)]
    if not defined.size:
        return Estimate(float(value), n=n)
    tail = (1 - confidence) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Estimate(float(value), float(low), float(high), n)


def cohen_kappa(counts: Array) -> Array:
    """Cohen's kappa (Cohen 1960, equation 1); counts of shape (..., labels, labels) give shape (...).

    nan where there are no answers, and where only one label occurs, so that chance agreement is 1.
    """
    n = counts.sum((-1, -2))
    by_chance = (counts.sum(-1) * counts.sum(-2)).sum(-1)
    # In whole numbers, so that a chance agreement of 1 is exactly that.
    return ratio(n * diagonal(counts).sum(-1) - by_chance, n * n - by_chance)


def diagonal(counts: Array) -> Array:
    """The counts where both labels are one; shape (..., labels, labels) gives (..., labels)."""
    import numpy as np

    found: Array = np.diagonal(counts, axis1=-2, axis2=-1)
    return found


def ratio(part: Array, whole: Array) -> Array:
    """``part / whole``, nan where ``whole`` is 0; the shapes are broadcast."""
    import numpy as np

    part, whole = np.broadcast_arrays(np.asarray(part, float), np.asarray(whole, float))
    found: Array = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return found
