"""Calibration: how well confidences say whether an answer is right, with intervals for answers that come in clusters.

Arrays have shape (answers,): ``confidence`` between 0 and 1, ``right`` 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import SHARE, UNBOUNDED, estimate, resample, share_estimate
from benchmarks.vocabulary import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.integer[Any]]

MIN_CLUSTERS = 30
"""The fewest clusters of a calibration curve."""

BINS = 10
"""The most bins of a calibration curve."""

_PER_BIN = 10
"""The fewest clusters for each bin of a calibration curve."""


@dataclass(frozen=True, slots=True)
class Bin:
    """A bin of a reliability diagram: the mean confidence of its ``n`` answers, and their share of right ones."""

    confidence: float
    accuracy: Estimate
    n: int


def bin_count(clusters: int) -> int:
    """Return the number of bins for so many clusters: ten in each, at most ten bins."""
    return max(1, min(BINS, clusters // _PER_BIN))


def bin_numbers(confidence: Array, bins: int) -> Codes:
    """Return the bin of each answer, by its place among all: equal-mass bins (Nguyen and O'Connor 2015, section 3).

    Equal confidences share a bin, that of their middle place, so that bins can be uneven, or empty. Edges at quantiles, as
    scikit-learn has them, would put all answers of a model that is often certain into one bin.
    """
    import numpy as np

    _, value, count = np.unique(confidence, return_inverse=True, return_counts=True)
    places = (np.cumsum(count) - count / 2)[value] / max(1, len(confidence))
    numbers: Codes = np.minimum((places * bins).astype(np.int64), bins - 1)
    return numbers


def reliability(confidence: Array, right: Array, clusters: Clusters, bins: int) -> list[Bin]:
    """Return the bins of the reliability diagram that hold answers, in rising order (Murphy and Winkler 1977)."""
    numbers = bin_numbers(confidence, bins)
    curve = []
    for number in range(bins):
        chosen = numbers == number
        if not chosen.any():
            continue
        accuracy = clusters.at(chosen).mean(right[chosen])
        curve.append(Bin(float(confidence[chosen].mean()), accuracy, int(chosen.sum())))
    return curve


# --- intervals -----------------------------------------------------------------------------------


def mean_estimate(
    values: Array,
    clusters: Clusters,
    *,
    resamples: int,
    seed: int,
    within: tuple[float, float] = UNBOUNDED,
    reason: str = "no answers",
) -> Estimate:
    """Return the mean with its bootstrap interval over clusters; n/a without values."""
    import numpy as np

    if not len(values):
        return Estimate(None, reason=reason)
    sums = clusters.sums(np.stack([values, np.ones(len(values))], axis=1))
    totals = resample(sums, resamples, seed)
    means = totals[:, 0] / totals[:, 1]
    return estimate(float(values.mean()), means, len(values), clusters=clusters.count, within=within)


def calibration_error_estimate(
    confidence: Array, right: Array, clusters: Clusters, bins: int, *, resamples: int, seed: int
) -> tuple[Estimate, float]:
    """Return the calibration error with an interval, and the mean error that chance gives a calibrated model.

    The error is the mean of |share right - mean confidence| over bins, weighted by their answers (Naeini, Cooper and Hauskrecht
    2015, equation 2, with equal-mass bins).
    Shares of finitely many answers vary, which makes every error too high, and that of a resample too high once more. So the
    lower limit is the basic bootstrap's (2 times the value less the upper quantile, Davison and Hinkley 1997, section 5.2), or 0
    if the value is within the errors of chance; the upper limit is the higher of the basic and the percentile bootstrap's. The
    errors of chance are those of the resampled gaps less the observed ones. All resamples are of clusters.
    """
    import numpy as np

    n = len(confidence)
    cells = np.zeros((n, bins + 1))
    cells[np.arange(n), bin_numbers(confidence, bins)] = right - confidence
    cells[:, -1] = 1
    sums = clusters.sums(cells)
    gaps, totals = sums.sum(0)[:-1], resample(sums, resamples, seed)
    value = float(np.abs(gaps).sum() / n)
    if not len(totals):
        return Estimate(value, n=n), 0.0
    low, high = np.quantile(np.abs(totals[:, :-1]).sum(1) / totals[:, -1], [0.025, 0.975])
    by_chance = np.abs(totals[:, :-1] - gaps).sum(1) / n
    lowest = 0.0 if value <= np.quantile(by_chance, 0.975) else max(0.0, 2 * value - high)
    limits = float(lowest), float(max(high, 2 * value - low))
    return Estimate(value, *limits, n), float(by_chance.mean())


def brier_estimate(confidence: Array, right: Array, clusters: Clusters, *, resamples: int, seed: int) -> Estimate:
    """Return the mean squared difference of confidence and rightness (Brier 1950) with its bootstrap interval over clusters."""
    return mean_estimate((confidence - right) ** 2, clusters, resamples=resamples, seed=seed, within=SHARE)


def auroc_estimate(score: Array, positive: Array, clusters: Clusters) -> Estimate:
    """Return the AUROC with an interval for answers that are correlated within clusters, of one class or of both.

    The AUROC is the probability that a positive has a higher score than a negative, ties counting half (Hanley and McNeil 1982).
    The variance is Obuchowski's (1997), DeLong's for answers in groups; the interval is that of a share in as many clusters as
    hold the rarer class, since each positive is compared with all negatives.
    """
    import numpy as np

    n = len(score)
    chosen = positive > 0
    above, below = _placements(score, positive)
    if not len(above) or not len(below):
        return Estimate(None, n=n, reason="all answers are of one kind")
    area = float(above.mean())
    influence = np.empty(n)
    influence[chosen] = (above - area) / len(above)
    influence[~chosen] = (below - area) / len(below)
    rarer = min(clusters.at(chosen).own_count, clusters.at(~chosen).own_count)
    return share_estimate(area, float((clusters.sums(influence) ** 2).sum()), rarer, n)


def _placements(score: Array, positive: Array) -> tuple[Array, Array]:
    """Return the share of negatives below each positive, and of positives above each negative; ties count half."""
    import numpy as np

    high, low = score[positive > 0], score[positive <= 0]
    if not len(high) or not len(low):
        return high[:0] if not len(high) else high * np.nan, low * np.nan
    high_order, low_order = np.sort(high), np.sort(low)
    below = (np.searchsorted(low_order, high) + np.searchsorted(low_order, high, side="right")) / (2 * len(low))
    under = (np.searchsorted(high_order, low) + np.searchsorted(high_order, low, side="right")) / (2 * len(high))
    return below, 1 - under
