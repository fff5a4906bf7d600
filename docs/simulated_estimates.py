"""Estimates of simulated studies beside their true values: shares, differences and confidences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.stats.calibration import (
    auroc_estimate,
    bin_count,
    brier_estimate,
    calibration_error_estimate,
    mean_estimate,
)
from benchmarks.stats.intervals import (
    DIFFERENCE,
    SHARE,
    UNBOUNDED,
    Draws,
    clustered_wilson,
    estimate,
    independent_difference,
    macro_average,
    ratio,
    resample,
    wilson,
)
from benchmarks.stats.logistic_fit import fit_logistic
from benchmarks.stats.paired_tests import share_difference
from benchmarks.tables.declared_tables import Column, Sheet
from benchmarks.vocabulary import Estimate
from docs.simulated_clusters import Array, Study, covers, quantile

Results = Iterable[float | tuple[float, ...]]

RESAMPLES = {SHARE: 400, DIFFERENCE: 400, None: 1000}
"""The resamples by the range of a metric; the tables have 1,000, of which a variance needs fewer than a percentile."""
CORRECTED_RESAMPLES, _CURVE_RESAMPLES = 500, 400
_WINDOW = 64
"""The number of examples between two looks at a run that may stop early: 256 instances under four conditions."""
WIDTH = 0.2
"""The width at which such a run stops."""


def share(study: Study, truth: float) -> Results:
    """Measure the share of right answers, by sums over clusters."""
    right = study.below(truth)
    for sums in study.sums(right, np.ones_like(right)):
        yield covers(clustered_wilson(sums[:, 0], sums[:, 1]), truth)


def share_of_some(study: Study, truth: float) -> Results:
    """Measure a share of those answers that do not abstain, which are 60% of all."""
    counted = study.below(0.6)
    right = counted * study.below(truth)
    for sums in study.sums(right, counted):
        yield covers(clustered_wilson(sums[:, 0], sums[:, 1]), truth)


def stopped_share(study: Study, truth: float) -> Results:
    """Measure the share at the first look at which its interval is narrow, or at the end."""
    right = study.below(truth)
    for hits in right:
        order = study.random.permutation(len(study.own))
        for looked in range(_WINDOW, len(order) + _WINDOW, _WINDOW):
            asked = order[:looked]
            pages = study.own[asked]
            interval = clustered_wilson(np.bincount(pages, hits[asked]), np.bincount(pages))
            assert interval.low is not None
            assert interval.high is not None
            if interval.high - interval.low <= WIDTH:
                break
        yield covers(interval, truth)


def independent_share(study: Study, truth: float) -> Results:
    """Measure the share of answers of which each is a cluster of its own, by Wilson's interval."""
    for hits in study.below(truth).sum(1):
        yield covers(wilson(hits, len(study.own)), truth)


def is_first(counts: Any) -> Any:
    """Return the share of the first of two cells."""
    return ratio(counts[..., 0], counts[..., 0] + counts[..., 1])


def _first_less_second(counts: Any) -> Any:
    return ratio(counts[..., 0, 0], counts[..., 0, :].sum(-1)) - ratio(counts[..., 1, 0], counts[..., 1, :].sum(-1))


_SHARE_COLUMN = Column(is_first, rests_on=lambda totals: totals[..., :2].sum())
_DIFFERENCE_COLUMN = Column(_first_less_second, within=DIFFERENCE)


def _cell(counts: Array, seed: int, column: Column) -> Estimate:
    (cell,) = Sheet(counts, RESAMPLES[column.within], seed).cells([column])
    return cell


def bootstrap_share(study: Study, truth: float) -> Results:
    """Measure the share of right answers in a benchmark's table."""
    right = study.below(truth)
    for counts, seed in zip(study.sums(right, 1 - right), study.seeds, strict=True):
        yield covers(_cell(counts, seed, _SHARE_COLUMN), truth)


def bootstrap_ratio(study: Study, truth: float) -> Results:
    """Measure a label's share among two labels that 60% of the answers have."""
    counted, first = study.below(0.6), study.below(truth)
    for counts, seed in zip(study.sums(counted * first, counted * (1 - first)), study.seeds, strict=True):
        yield covers(_cell(counts, seed, _SHARE_COLUMN), truth)


def _task(study: Study) -> NDArray[np.int64]:
    """Return the task of each answer: 0 for 50% of them, 1 for 30%, 2 for 20%."""
    return np.array([0, 1, 0, 2, 0, 1, 0, 2, 0, 1])[np.arange(len(study.own)) % 10]


def _by_task(study: Study, shares: Sequence[float]) -> tuple[Array, Array]:
    """Return right answers and answers by cluster and task, shapes (replicates, clusters, tasks)."""
    task = _task(study)
    normal = study.normal()
    right = (normal < np.array([quantile(share) for share in shares])[task]).astype(float)
    of_task = [(task == place).astype(float) for place in range(len(shares))]
    hits = study.sums(*(right * of for of in of_task))
    return hits, study.sums(*(np.broadcast_to(of, right.shape) for of in of_task))


def task_mean(study: Study, truth: float) -> Results:
    """Measure the mean of three tasks' shares, of which one is higher and one lower by .08."""
    hits, sizes = _by_task(study, (truth - 0.08, truth, truth + 0.08))
    for right, answers in zip(hits, sizes, strict=True):
        yield covers(macro_average(right, answers), truth)


def paired_difference(study: Study, gain: float, loss: float) -> Results:
    """Measure the difference of two runs' shares over the same instances."""
    gains, losses = study.changes(gain, loss)
    for sums in study.sums(gains, losses, np.ones_like(gains)):
        difference = share_difference(*sums.T)
        assert difference is not None
        yield covers(difference.estimate, gain - loss)


def condition_difference(study: Study, gain: float, loss: float) -> Results:
    """Measure the difference of a run's shares under two conditions, by the variance of the bootstrap."""
    gains, losses = study.changes(gain, loss)
    same = (1 - gains - losses) * study.below(0.5)
    first, second = gains + same, losses + same
    counts = study.sums(first, 1 - first, second, 1 - second).reshape(study.replicates, -1, 2, 2)
    for of, seed in zip(counts, study.seeds, strict=True):
        yield covers(_cell(of, seed, _DIFFERENCE_COLUMN), gain - loss)


def two_ratios(study: Study, first: float, second: float, counted: tuple[float, float]) -> Array:
    """Return counts of two labels in two runs whose answers are correlated; shape (replicates, clusters, runs, labels)."""
    effects = study.normal(), study.normal()  # what the runs share: which answers count, and which label they have
    cells = []
    for run, is_counted in zip((first, second), counted, strict=True):
        counts, label = (
            (of + study.normal()) / math.sqrt(2) < quantile(part)
            for of, part in zip(effects, (is_counted, run), strict=True)
        )
        cells += [(counts & label).astype(float), (counts & ~label).astype(float)]
    return study.sums(*cells).reshape(study.replicates, -1, 2, 2)


def ratio_difference(study: Study, first: float, second: float) -> Results:
    """Measure the difference of two runs in a label's share among two labels, by the variance of the bootstrap."""
    for counts, seed in zip(two_ratios(study, first, second, (0.6, 0.6)), study.seeds, strict=True):
        totals, draws = counts.sum(0), Draws.of(counts, RESAMPLES[DIFFERENCE], seed)
        values, replicates = is_first(totals), draws.replicates(is_first)
        interval = estimate(
            float(values[1] - values[0]),
            replicates[:, 1] - replicates[:, 0],
            round(totals.sum()),
            clusters=int((counts.sum((1, 2)) > 0).sum()),
            within=DIFFERENCE,
        )
        yield covers(interval, second - first)


def unpaired_difference(study: Study, first: float, second: float) -> Results:
    """Measure the difference of the shares of two studies."""
    shares = [study.below(of) for of in (first, second)]
    for sums in study.sums(*shares, np.ones_like(shares[0])):
        ours, theirs = (clustered_wilson(sums[:, run], sums[:, 2]) for run in (0, 1))
        yield covers(independent_difference(ours, theirs), first - second)


def mean_less_task(study: Study, truth: float) -> Results:
    """Measure the mean of two tasks' shares less that of a third."""
    hits, sizes = _by_task(study, (truth - 0.08, truth, truth + 0.08))
    for right, answers in zip(hits, sizes, strict=True):
        mean = macro_average(right[:, :2], answers[:, :2])
        yield covers(independent_difference(mean, clustered_wilson(right[:, 2], answers[:, 2])), -0.12)


def _logistic(value: Array) -> Array:
    logistic: Array = 1 / (1 + np.exp(-value))
    return logistic


def _confident(study: Study, slope: float, shift: float) -> tuple[Array, Array]:
    """Return confidences and right answers; these are right with the probability of which the log odds are given."""
    doubt = study.normal()
    quantiles = _quantiles(_logistic(slope * doubt + shift))
    return _logistic(1.5 * doubt + 0.5), (study.normal() < quantiles).astype(float)


_GRID = np.linspace(-8, 8, 20_001)
_DENSITY = np.exp(-_GRID * _GRID / 2)
_DENSITY /= _DENSITY.sum()


def _quantiles(shares: Array) -> Array:
    """Return the quantiles of the normal distribution, by interpolation."""
    return np.interp(shares, np.cumsum(_DENSITY) - _DENSITY / 2, _GRID)


def _gaps(slope: float, shift: float) -> tuple[Array, Array]:
    """Return the confidence, and the probability of being right, over the grid."""
    return _logistic(1.5 * _GRID + 0.5), _logistic(slope * _GRID + shift)


def brier(study: Study, slope: float, shift: float) -> Results:
    """Measure the Brier score, a mean between 0 and 1 by the variance of the bootstrap."""
    confidence, chance = _gaps(slope, shift)
    truth = float((_DENSITY * (chance * (1 - confidence) ** 2 + (1 - chance) * confidence**2)).sum())
    confidences, right = _confident(study, slope, shift)
    for of, hits, clusters, seed in zip(confidences, right, study.clusters, study.seeds, strict=True):
        yield covers(brier_estimate(of, hits, clusters, resamples=RESAMPLES[SHARE], seed=seed), truth)


def calibration_error(study: Study, slope: float, shift: float) -> Results:
    """Measure the expected calibration error, of designs that have enough clusters for it."""
    bins = bin_count(len(study.sizes))
    confidence, chance = _gaps(slope, shift)
    numbers = np.minimum((np.cumsum(_DENSITY) * bins).astype(int), bins - 1)
    truth = float(np.abs(np.bincount(numbers, _DENSITY * (chance - confidence))).sum())
    confidences, right = _confident(study, slope, shift)
    for of, hits, clusters, seed in zip(confidences, right, study.clusters, study.seeds, strict=True):
        interval, _ = calibration_error_estimate(of, hits, clusters, bins, resamples=RESAMPLES[None], seed=seed)
        yield covers(interval, truth)


def area(study: Study, positives: float, truth: float) -> Results:
    """Measure the AUROC of a score that is normal in either class."""
    positive = study.below(positives)
    score = study.normal() + math.sqrt(2) * quantile(truth) * positive
    for of, hits, clusters in zip(score, positive, study.clusters, strict=True):
        yield covers(auroc_estimate(of, hits, clusters), truth)


def log_odds(study: Study, tail: float) -> Results:
    """Measure the mean of a number without bounds, which is skewed by ``tail``."""
    normal = study.normal()
    values = np.exp(tail * normal) if tail else normal
    truth = math.exp(tail * tail / 2) if tail else 0.0
    for of, clusters, seed in zip(values, study.clusters, study.seeds, strict=True):
        yield covers(mean_estimate(of, clusters, resamples=RESAMPLES[None], seed=seed), truth)


_DOSES = np.linspace(0, 1, 5)
_MOST_UNDEFINED = 0.05
"""The share of resamples without a curve above which a table has no interval, as in ``benchmarks/factors/factor_tables.py``."""


def curve(study: Study, intercept: float, slope: float) -> Results:
    """Measure the dose at which a logistic curve is one half, and its slope; each question is asked at five doses."""
    hits = [study.normal() < limit for limit in _quantiles(_logistic(intercept + slope * _DOSES))]
    sums = study.sums(*(of.astype(float) for of in hits))
    sizes = np.broadcast_to(study.sizes[:, None], sums.shape[1:])
    for of, seed in zip(sums, study.seeds, strict=True):
        counts = np.stack([of, sizes], axis=-1)
        totals, draws = counts.sum(0), resample(counts, _CURVE_RESAMPLES, seed)
        fit, fits = (fit_logistic(_DOSES, by_dose[..., 0], by_dose[..., 1]) for by_dose in (totals, draws))
        middle = float(fit.midpoint) if 0 < fit.midpoint < 1 else math.nan
        yield tuple(
            math.nan
            if np.isnan(replicates).mean() > _MOST_UNDEFINED
            else covers(estimate(value, replicates, 1, clusters=len(counts), within=within), truth)
            for value, replicates, truth, within in (
                (middle, fits.midpoint, -intercept / slope, None),
                (float(fit.slope), fits.slope, slope, UNBOUNDED),
            )
        )
