"""Confidence intervals over clusters, and chance-corrected agreement."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from benchmarks.stats.bootstrap import Draws as Draws
from benchmarks.stats.bootstrap import distinct_rows as distinct_rows
from benchmarks.stats.bootstrap import resample as resample
from benchmarks.vocabulary import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.integer] | NDArray[np.floating]

_PRIOR_ANSWERS = 4
"""The number of answers by which a stratum's share is shrunk towards the mean of all strata."""

_MANY_DEGREES = 2000
"""The number of degrees of freedom above which Student's t is normal, to five digits."""

_SLACK = 1e-12


_STEP = 1e-6
"""The part of a cluster that is added to take a derivative."""


def span(low: str, high: str) -> str:
    """Return the printed ends of an interval as a range, or as one value if they read the same."""
    return low if low == high else f"{low} to {high}"


def percent(share: Estimate | float | None) -> str:
    """Return a share as a whole percentage, or as one that ends in a half, so that two halves add up to 100%."""
    value = share.value if isinstance(share, Estimate) else share
    if value is None:
        return "unknown"
    is_half = abs(100 * value % 1 - 0.5) < 1e-9
    return f"{value:.{int(is_half)}%}"


INTERVALS = "Intervals: 95%, over clusters: examples that show the same picture, page or document count together."
"""The note on the intervals of tables."""

SHARE = (0.0, 1.0)
"""The range of a share."""
DIFFERENCE = (-1.0, 1.0)
"""The range of a difference of shares."""
UNBOUNDED = (-math.inf, math.inf)
"""The range of a number that may be any, such as a mean of log odds."""

FEW_CLUSTERS = 10
"""Below this number of clusters, an interval is a range that says little of other pages."""


def few_pages(*clusters: int) -> str:
    """Return a sentence on too few clusters for a claim about others, the fewest of these; empty if there are enough, or none."""
    fewest = min(filter(None, clusters), default=FEW_CLUSTERS)
    if fewest >= FEW_CLUSTERS:
        return ""
    pages = "one picture, page or document" if fewest == 1 else f"{fewest} pictures, pages or documents"
    return f"Too few pages: the numbers rest on {pages}, and others may give other numbers."


def wilson(successes: float, n: int, confidence: float = 0.95) -> Estimate:
    """Return the proportion ``successes / n`` with Wilson's score interval (Wilson 1927); n/a if ``n`` is 0.

    For independent answers only; those of a run are in clusters.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return score(successes / n, n, n, z) if n else Estimate(None, reason="no answers")


def clustered_wilson(successes: Any, sizes: Any, clusters: int | None = None, confidence: float = 0.95) -> Estimate:
    """Return the proportion over all answers with the score interval of :func:`share_estimate`.

    ``successes`` and ``sizes`` have shape (clusters,); ``clusters`` is the number of those that count, by default of those with
    answers.
    """
    import numpy as np

    hits, size = np.asarray(successes, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    n = float(size.sum())
    if n <= 0:
        return Estimate(None, reason="no answers")
    p = min(1.0, max(0.0, float(hits.sum()) / n))
    variance = float(((hits - p * size) ** 2).sum()) / (n * n)
    known = int((size > 0).sum()) if clusters is None else clusters
    return share_estimate(p, variance, known, round(n), confidence)


def share_estimate(p: float, variance: float, clusters: int, n: int, confidence: float = 0.95) -> Estimate:
    """Return a share with Wilson's score interval for answers in clusters; with one cluster, it has none.

    ``variance`` is that of ``p`` over clusters: the sum of their squared deviations by that of the answers, or the bootstrap's.
    The formula's n is the effective sample size (Kish 1965, section 8.2), at most the number of answers, and its quantile is
    Student's with ``clusters`` - 1 degrees of freedom. The effective size takes in two clusters of half the usual size, one all
    right and one all wrong, which keep it down where few clusters happen to agree (Agresti and Coull 1998 add two answers of
    each); if all answers are equal, it is at most the number of clusters. docs/intervals.md has its measured coverage.
    """
    if clusters < 2:
        return Estimate(p, n=n)
    return score(p, effective_size(p, variance, clusters, n), n, student_quantile((1 + confidence) / 2, clusters - 1))


def effective_size(p: float, variance: float, clusters: int, n: float) -> float:
    """Return the size of a simple random sample in which the share ``p`` would vary as it does; see :func:`share_estimate`."""
    centre = (p * clusters + 0.5) / (clusters + 1)
    spread = clusters**2 * variance + clusters * (p - centre) ** 2 + ((1 - centre) ** 2 + centre**2) / 4
    effective = (clusters**2 - 1) * centre * (1 - centre) / spread
    return min(effective, n, clusters if p in (0, 1) else math.inf)


def difference_estimate(value: float, variance: float, clusters: int, n: int, confidence: float = 0.95) -> Estimate:
    """Return a difference of two metrics with an interval by its ``variance`` over clusters; with one cluster, it has none.

    Two clusters of half the usual size, in which all of the difference falls on one side, are added as by Bonett and Price
    (2012); the quantile is Student's.
    """
    if clusters < 2:
        return Estimate(value, n=n)
    centre, error = adjusted_difference(value, variance, clusters)
    half_width = student_quantile((1 + confidence) / 2, clusters - 1) * error
    low, high = max(-1.0, centre - half_width), min(1.0, centre + half_width)
    return Estimate(value, min(low, value), max(high, value), n)


def adjusted_difference(value: float, variance: float, clusters: int) -> tuple[float, float]:
    """Return the centre and the standard error of :func:`difference_estimate`."""
    centre = value * clusters / (clusters + 1)
    spread = clusters**2 * variance + clusters * (value - centre) ** 2 + (1 + centre**2) / 2
    return centre, math.sqrt(spread) / (clusters + 1)


def score(p: float, effective: float, answers: int, z: float) -> Estimate:
    """Return the share ``p`` of ``answers`` with the score interval of a sample of ``effective`` size, at the quantile ``z``."""
    n = effective
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half_width = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return Estimate(p, min(p, max(0.0, centre - half_width)), max(p, min(1.0, centre + half_width)), answers)


@lru_cache(maxsize=1024)
def student_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t, for a ``probability`` of 0.5 or more."""
    if degrees > _MANY_DEGREES:
        return NormalDist().inv_cdf(probability)
    low, high = 0.0, 2.0
    while student_cdf(high, degrees) < probability:
        low, high = high, 2 * high
    while high - low > _SLACK * high:
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, degrees) < probability else (low, middle)
    return high


def student_cdf(t: float, degrees: int) -> float:
    """Return the probability that Student's t is at most ``t`` (Abramowitz and Stegun 1964, equations 26.7.3 and 26.7.4)."""
    if degrees > _MANY_DEGREES:
        return NormalDist().cdf(t)
    angle = math.atan2(abs(t), math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = degrees % 2
    term = cosine if is_odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + is_odd, degrees - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    inside = 2 / math.pi * (angle + sine * total) if is_odd else sine * total
    return (1 + math.copysign(inside, t)) / 2


def macro_average(hits: Counts, sizes: Counts, confidence: float = 0.95) -> Estimate:
    """Return the unweighted mean of strata's shares with a score interval; n is the number of answers.

    ``hits`` and ``sizes`` have shape (clusters, strata). The effective sample size is the lesser of two: that of
    :func:`share_estimate` by the mean's variance over clusters; and that by the strata's variances, of which each is that of its
    share after shrinking it towards the mean by z^2 = 4 answers, as Agresti and Coull (1998) shrink theirs towards one half, so
    that a stratum with one answer or with equal answers does not count as certain. n/a if any stratum has no answer.
    """
    import numpy as np

    right, answers = hits.sum(0), sizes.sum(0)
    n = round(float(answers.sum()))
    if not answers.all():
        return Estimate(None, n=n, reason="no answers")
    weight = 1 / len(answers)
    shares = right / answers
    p = min(1.0, max(0.0, float(shares.sum() * weight)))
    if 0 < p < 1:
        shrunk = (right + _PRIOR_ANSWERS * p) / (answers + _PRIOR_ANSWERS)
        by_strata = p * (1 - p) / float((weight**2 * shrunk * (1 - shrunk) / answers).sum())
    else:
        by_strata = 1 / float((weight**2 / answers).sum())
    clusters = int((sizes.sum(1) > 0).sum())
    if clusters < 2:
        return Estimate(p, n=n)
    deviations = ((hits - shares * sizes) / answers).sum(1) * weight
    effective = effective_size(p, float((np.asarray(deviations) ** 2).sum()), clusters, by_strata)
    return score(p, effective, n, student_quantile((1 + confidence) / 2, clusters - 1))


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


def estimate(
    value: float,
    replicates: NDArray[np.float64],
    n: int,
    *,
    clusters: int,
    within: tuple[float, float] | None = SHARE,
    reason: str = "",
    confidence: float = 0.95,
) -> Estimate:
    """Return a metric's value with an interval by its bootstrap ``replicates``, shape (resamples,).

    ``clusters`` is the number of clusters behind it, and ``within`` its range: a share has the interval of
    :func:`share_estimate`, a metric between -x and x that of :func:`difference_estimate`, an unbounded one Student's, all by the
    variance of the replicates; with None, it has their percentiles, moved out as the few clusters ask for (Hesterberg 2015,
    section 5.3). A ``value`` of nan gives n/a with ``reason``. Replicates that are nan are ignored.
    """
    import numpy as np

    if math.isnan(value):
        return Estimate(None, n=n, reason=reason or "undefined: it would divide by zero")
    defined = np.sort(replicates)  # nan comes last
    defined = defined[: len(defined) - int(np.isnan(defined).sum())]
    if not defined.size or clusters < 2:
        return Estimate(float(value), n=n)
    if within == SHARE:
        return share_estimate(float(value), float(defined.var()), clusters, n, confidence)
    quantile, few = student_quantile((1 + confidence) / 2, clusters - 1), clusters / (clusters - 1)
    if within == UNBOUNDED:
        half_width = few * quantile * float(defined.std())  # of a fitted curve, sqrt(few) covers too little
        return Estimate(float(value), value - half_width, value + half_width, n)
    if within is not None:
        unit = within[1]
        scaled = difference_estimate(float(value) / unit, float((defined / unit).var()), clusters, n, confidence)
        low, high = (None if end is None else end * unit for end in (scaled.low, scaled.high))
        return Estimate(float(value), low, high, n)
    tail = NormalDist().cdf(-math.sqrt(few) * quantile)
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


def kappa_estimate(counts: Counts, draws: Draws, reason: str) -> Estimate:
    """Return Cohen's kappa of ``counts``, shape (clusters, labels, labels), and of their ``draws``; n/a with ``reason``."""
    return estimate(
        float(cohen_kappa(draws.totals)),
        draws.replicates(cohen_kappa),
        round(float(draws.totals.sum())),
        clusters=telling_clusters(counts.reshape(len(counts), counts[0].size)) if len(counts) else 0,
        within=DIFFERENCE,
        reason=reason,
    )


def telling_clusters(counts: Counts) -> int:
    """Return how many clusters hold anything but the most frequent cell of ``counts``, shape (clusters, cells).

    Where labels are rare, only these few clusters say how well judges agree beyond chance.
    """
    import numpy as np

    others = np.delete(counts, counts.sum(0).argmax(), axis=1)
    return int((others > 0.5).any(1).sum())  # of a borrowed page, the mean over clusters is counted off


def influence(metric: Callable[[Any], Any], counts: Array) -> Array:
    """Return by how much each cluster moves a metric of the totals of ``counts``, shape (clusters, *cells).

    It is the derivative by a cluster's weight, and adds up to 0 for a metric of shares; shape (clusters, ...).
    """
    import numpy as np

    totals = counts.sum(0, dtype=np.float64)
    moved: Array = (np.asarray(metric(totals + _STEP * counts)) - np.asarray(metric(totals))) / _STEP
    return moved


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
