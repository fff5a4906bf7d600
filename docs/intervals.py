"""The page "Intervals": the measured coverage of every interval, and the false positives of every test.

``.venv/bin/python docs/intervals.py [REPLICATES]`` simulates studies whose truth is known, computes the intervals with the code
that computes those of the tables, and writes ``docs/intervals.md``. The default takes 17 minutes of one core.
"""

from __future__ import annotations

import math
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.abstention import Costs, utility_estimate
from benchmarks.sheet import Column, Sheet
from benchmarks.stats.calibration import (
    MIN_CLUSTERS,
    auroc_estimate,
    bin_count,
    brier_estimate,
    calibration_error_estimate,
    mean_estimate,
)
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import (
    DIFFERENCE,
    SHARE,
    UNBOUNDED,
    Draws,
    clustered_wilson,
    estimate,
    independent_difference,
    influence,
    kappa_estimate,
    macro_average,
    ratio,
    resample,
    wilson,
)
from benchmarks.stats.logistic import fit_logistic
from benchmarks.stats.paired_tests import difference_p, paired_p, share_difference
from benchmarks.vocabulary import Estimate, LabelMetrics
from judges.agreement import gwet_ac1, raw_agreement
from judges.prediction_powered import NOT_SEEN, correct, correction_sums

Array = NDArray[np.float64]
Results = Iterable[float | tuple[float, ...]]

PAGE = Path(__file__).with_name("intervals.md")
REFERENCE = "*Reference. New here? [Three paths](pages.md).*"
REPLICATES = 10_000
BOOTSTRAP_REPLICATES, CURVE_REPLICATES = 2_000, 1_000
"""The replicates of an interval by the bootstrap, and of one for a fitted curve."""
REFINED, DOUBT = 5, 3
"""A rate that misses its bound by less than ``DOUBT`` standard errors is measured anew, with this many times the replicates."""

LEAST, MOST_REJECTED = 0.93, 0.06
MEANS = (0.93, 0.97)
"""The range of the mean coverage over the usual cells: at least 20 clusters, and shares between .1 and .9."""

_RESAMPLES = {SHARE: 400, DIFFERENCE: 400, None: 1000}
"""The resamples by the range of a metric; the tables have 1,000, of which a variance needs fewer than a percentile."""
_CORRECTED_RESAMPLES, _CURVE_RESAMPLES = 500, 400
_SEEDED = 50
"""The number of replicates that have one seed, whose draws are kept."""
_WINDOW = 64
"""The number of examples between two looks at a run that may stop early: 256 instances under four conditions."""
_WIDTH = 0.2
"""The width at which such a run stops."""
_SLACK = 1e-9

_NORMAL = NormalDist()


# --- simulated studies ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Design:
    """Pages, and the number of questions of each."""

    name: str
    sizes: tuple[int, ...]

    @property
    def correlations(self) -> tuple[float, ...]:
        """The correlations within a page that can be simulated."""
        return CORRELATIONS if max(self.sizes) > 1 else CORRELATIONS[:1]


CORRELATIONS = (0.0, 0.2, 0.4, 0.6)
"""Correlations within a page of the normal variables behind the answers."""

DESIGNS = (
    Design("20 pages × 10", (10,) * 20),
    Design("40 pages × 5", (5,) * 40),
    Design("62 charts, 118 questions", (1,) * 28 + (2,) * 20 + (3,) * 8 + (4,) * 4 + (5,) * 2),
    Design("8 pages × 6", (6,) * 8),
    Design("96 independent", (1,) * 96),
)
FEW = 20
"""The number of clusters from which on a design counts for the mean coverage."""

BORROWED = {"own page": 0.0, "half": 0.5, "borrowed page": 1.0}
"""The part of a page's effect on an answer that is that of the page from which its picture is borrowed, by name."""


@dataclass(frozen=True)
class Study:
    """Replicates of a study: answers to questions about pages, correlated within a page.

    Attributes:
        sizes: The number of questions of each page.
        correlation: The correlation within a page of the normal variables behind the answers.
        borrowed: The part of a page's effect that is the borrowed page's; None if no picture is borrowed.
    """

    random: np.random.Generator
    sizes: NDArray[np.int64]
    correlation: float
    replicates: int
    borrowed: float | None = None

    @cached_property
    def own(self) -> NDArray[np.int64]:
        """The page of each answer, shape (answers,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def shown(self) -> NDArray[np.int64]:
        """The other page that each answer shows, shape (replicates, answers)."""
        step = self.random.integers(1, len(self.sizes), size=(self.replicates, len(self.own)))
        return (self.own + step) % len(self.sizes)

    @property
    def clusters(self) -> Iterator[Clusters]:
        """The clusters of the answers in each replicate."""
        if self.borrowed is None:
            of_all = Clusters.of(self.own)
            for _ in range(self.replicates):
                yield of_all
        else:
            for shown in self.shown:
                yield Clusters.of(self.own, shown[:, None])

    def normal(self, correlation: float | None = None) -> Array:
        """Return standard normal variables, shape (replicates, answers), correlated within a page."""
        together = self.correlation if correlation is None else correlation
        effect = self.random.standard_normal((self.replicates, len(self.sizes)))
        by_answer = effect[:, self.own]
        if self.borrowed:
            others = np.take_along_axis(effect, self.shown, axis=1)
            by_answer = math.sqrt(1 - self.borrowed) * by_answer + math.sqrt(self.borrowed) * others
        noise = self.random.standard_normal(by_answer.shape)
        normal: Array = math.sqrt(together) * by_answer + math.sqrt(1 - together) * noise
        return normal

    def below(self, share: float, correlation: float | None = None) -> Array:
        """Return 1 for a ``share`` of the answers, else 0; shape (replicates, answers)."""
        return (self.normal(correlation) < quantile(share)).astype(float)

    def changes(self, gain: float, loss: float) -> tuple[Array, Array]:
        """Return which answers one of two runs gains and loses, shape (replicates, answers); pages favour one of the runs."""
        normal = self.normal()
        return (normal < quantile(gain)).astype(float), (normal > quantile(1 - loss)).astype(float)

    def labels(self, shares: Sequence[float]) -> NDArray[np.int64]:
        """Return labels that occur in these shares, shape (replicates, answers)."""
        ends = [quantile(sum(shares[: place + 1])) for place in range(len(shares) - 1)]
        return np.searchsorted(ends, self.normal())

    def sums(self, *values: Array) -> Array:
        """Return values of shape (replicates, answers) by cluster; shape (replicates, clusters, values)."""
        stacked = np.stack(values, axis=-1)
        if self.borrowed is None:
            starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
            by_page: Array = np.add.reduceat(stacked, starts, axis=1)
            return by_page
        return np.stack([clusters.sums(of) for clusters, of in zip(self.clusters, stacked, strict=True)])

    @property
    def seeds(self) -> Iterator[int]:
        """The seed of each replicate."""
        yield from (number // _SEEDED for number in range(self.replicates))


def quantile(share: float) -> float:
    """Return the quantile of the normal distribution, also at 0 and 1."""
    return _NORMAL.inv_cdf(share) if 0 < share < 1 else math.copysign(math.inf, share - 0.5)


def covers(interval: Estimate, truth: float) -> float:
    """Return 1 if the interval covers the truth, 0 if not, nan if there is none."""
    if interval.low is None or interval.high is None:
        return math.nan
    return float(interval.low - _SLACK <= truth <= interval.high + _SLACK)


# --- shares --------------------------------------------------------------------------------------


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
            if interval.high - interval.low <= _WIDTH:
                break
        yield covers(interval, truth)


def independent_share(study: Study, truth: float) -> Results:
    """Measure the share of answers of which each is a cluster of its own, by Wilson's interval."""
    for hits in study.below(truth).sum(1):
        yield covers(wilson(hits, len(study.own)), truth)


def _is_first(counts: Any) -> Any:
    return ratio(counts[..., 0], counts[..., 0] + counts[..., 1])


def _first_less_second(counts: Any) -> Any:
    return ratio(counts[..., 0, 0], counts[..., 0, :].sum(-1)) - ratio(counts[..., 1, 0], counts[..., 1, :].sum(-1))


_SHARE_COLUMN = Column(_is_first, rests_on=lambda totals: totals[..., :2].sum())
_DIFFERENCE_COLUMN = Column(_first_less_second, within=DIFFERENCE)


def _cell(counts: Array, seed: int, column: Column) -> Estimate:
    (cell,) = Sheet(counts, _RESAMPLES[column.within], seed).cells([column])
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


# --- differences ---------------------------------------------------------------------------------


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


def _two_ratios(study: Study, first: float, second: float, counted: tuple[float, float]) -> Array:
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
    for counts, seed in zip(_two_ratios(study, first, second, (0.6, 0.6)), study.seeds, strict=True):
        totals, draws = counts.sum(0), Draws.of(counts, _RESAMPLES[DIFFERENCE], seed)
        values, replicates = _is_first(totals), draws.replicates(_is_first)
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


# --- confidences ---------------------------------------------------------------------------------


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
        yield covers(brier_estimate(of, hits, clusters, resamples=_RESAMPLES[SHARE], seed=seed), truth)


def calibration_error(study: Study, slope: float, shift: float) -> Results:
    """Measure the expected calibration error, of designs that have enough clusters for it."""
    bins = bin_count(len(study.sizes))
    confidence, chance = _gaps(slope, shift)
    numbers = np.minimum((np.cumsum(_DENSITY) * bins).astype(int), bins - 1)
    truth = float(np.abs(np.bincount(numbers, _DENSITY * (chance - confidence))).sum())
    confidences, right = _confident(study, slope, shift)
    for of, hits, clusters, seed in zip(confidences, right, study.clusters, study.seeds, strict=True):
        interval, _ = calibration_error_estimate(of, hits, clusters, bins, resamples=_RESAMPLES[None], seed=seed)
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
        yield covers(mean_estimate(of, clusters, resamples=_RESAMPLES[None], seed=seed), truth)


_DOSES = np.linspace(0, 1, 5)
_MOST_UNDEFINED = 0.05
"""The share of resamples without a curve above which a table has no interval, as in ``benchmarks/factors/tables.py``."""


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


# --- agreement, utility, correction by people ----------------------------------------------------


def agreement(study: Study, truth: float, *shares: float) -> Results:
    """Measure the agreement of two judges, Cohen's kappa and Gwet's AC1; where they do not agree, they label at random."""
    labels = len(shares)
    first = study.labels(shares)
    anew = study.random.choice(labels, size=first.shape, p=shares)
    second = np.where(study.below(truth) > 0, first, anew)
    equal = truth + (1 - truth) * sum(part * part for part in shares)
    by_chance = sum(part * (1 - part) for part in shares) / (labels - 1)
    metrics = (
        (raw_agreement, SHARE, equal),
        (gwet_ac1, DIFFERENCE, (equal - by_chance) / (1 - by_chance)),
    )
    for cells, clusters, seed in zip(first * labels + second, study.clusters, study.seeds, strict=True):
        counts = clusters.tally(cells, labels * labels).reshape(-1, labels, labels).astype(float)
        totals, draws = counts.sum(0), Draws.of(counts, _RESAMPLES[SHARE], seed)
        agreed, ac1 = (
            covers(
                estimate(float(of(totals)), draws.replicates(of), len(cells), clusters=clusters.count, within=within),
                expected,
            )
            for of, within, expected in metrics
        )
        yield agreed, covers(kappa_estimate(counts, draws, ""), truth), ac1


_COSTS = Costs(wrong=1, needless=0.2, missed=3)


def mean_utility(study: Study, wrong: float, needless: float, missed: float) -> Results:
    """Measure the mean utility of answers to each question with and without a conflict."""
    without, conflict = study.labels((needless, 1 - needless - wrong, wrong)), study.below(missed)
    one_hot = [(without == place).astype(float) for place in range(3)]
    counts = study.sums(*one_hot, 1 - conflict, np.zeros_like(conflict), conflict).reshape(study.replicates, -1, 2, 3)
    truth = 1 - (wrong * _COSTS.wrong + needless * _COSTS.needless + missed * _COSTS.missed) / 2 / _COSTS.largest
    for of, seed in zip(counts.astype(np.int64), study.seeds, strict=True):
        yield covers(utility_estimate(of, _COSTS, _RESAMPLES[None], seed), truth)


_RIGHT = LabelMetrics(
    ("c",), ("right", "wrong"), {"right": lambda counts: ratio(counts[..., 0, 0], counts.sum((-1, -2)))}
)
_ERRORS = 0.1
"""The share of answers that the judge labels wrongly."""


def corrected(study: Study, truth: float) -> Results:
    """Measure a judge's share, corrected by people's labels of half of the answers; that by people alone; that by the judge."""
    by_people = (1 - study.below(truth)).astype(int)
    by_judge = np.where(study.below(_ERRORS) > 0, 1 - by_people, by_people)
    seen = np.argsort(study.random.random(by_people.shape), axis=1) < len(study.own) // 2
    labelled, condition = np.where(seen, by_people, NOT_SEEN), np.zeros(len(study.own), int)
    truths = truth, truth, truth * (1 - _ERRORS) + (1 - truth) * _ERRORS
    for judged, people, clusters, seed in zip(by_judge, labelled, study.clusters, study.seeds, strict=True):
        sums = correction_sums(clusters, condition, judged, people, (1, 2))
        right = correct(sums, _RIGHT, resamples=_CORRECTED_RESAMPLES, seed=seed)["right"]
        values = right.corrected, right.people, right.judge
        yield tuple(covers(value, of) for value, of in zip(values, truths, strict=True))


# --- tests ---------------------------------------------------------------------------------------


def paired_test(study: Study, changed: float) -> Results:
    """Test by the p of two runs with equal shares, of which pages favour one."""
    yield from _paired_p(study, *study.changes(changed, changed))


def uneven_test(study: Study, changed: float) -> Results:
    """Test by the p of two runs with equal shares, where whole pages gain and single answers lose."""
    gains = study.below(changed)
    yield from _paired_p(study, gains, (1 - gains) * study.below(changed / (1 - changed), 0.0))


def _paired_p(study: Study, gains: Array, losses: Array) -> Results:
    """Yield whether ``paired_p`` is at most 5%, asked only where the interval does not cover 0, at a fiftieth of the time."""
    for sums in study.sums(gains, losses, np.ones_like(gains)):
        difference = share_difference(*sums.T)
        assert difference is not None
        low, high = difference.interval()
        yield float(not low <= 0 <= high and paired_p(sums[:, 0] - sums[:, 1], difference) <= 0.05)


def ratio_test(study: Study, share: float, first_counts: float, second_counts: float) -> Results:
    """Test by the p of two runs with equal shares of a label among two labels, which they give to some answers each."""
    for counts, seed in zip(_two_ratios(study, share, share, (first_counts, second_counts)), study.seeds, strict=True):
        values, moved = _is_first(counts.sum(0)), influence(_is_first, counts)
        replicates = Draws.of(counts, _RESAMPLES[DIFFERENCE], seed).replicates(_is_first)
        variance, value = float(np.nanvar(replicates[:, 1] - replicates[:, 0])), float(values[1] - values[0])
        sizes = counts.sum((1, 2))
        sums = moved[:, 1] - moved[:, 0] + value * sizes / sizes.sum()
        yield float(difference_p(value, variance, len(counts), sums) <= 0.05)


def non_inferiority(study: Study, gain: float, loss: float) -> Results:
    """Test the claim that a run is worse by less than a margin, by which it is worse in truth.

    It is made by the lower bound, which is above the margin where ``non_inferiority_p`` is below 5%, at a fiftieth of the time.
    """
    gains, losses = study.changes(gain, loss)
    for sums in study.sums(gains, losses, np.ones_like(gains)):
        difference = share_difference(*sums.T)
        assert difference is not None
        yield float(difference.lower(0.95) > gain - loss + _SLACK)


# --- what is measured ----------------------------------------------------------------------------


class Scenario(NamedTuple):
    """The arguments of a kind; ``usual`` for shares between .1 and .9."""

    arguments: tuple[float, ...]
    usual: bool = True


@dataclass(frozen=True)
class Kind:
    """Intervals or tests of a kind, as a function of a study and a scenario that yields what it found in each replicate."""

    names: tuple[str, ...]
    measure: Callable[..., Results]
    scenarios: tuple[Scenario, ...]
    most: int = REPLICATES
    """The most replicates."""
    test: bool = False
    designs: tuple[Design, ...] = DESIGNS

    def fails(self, rate: float, replicates: int) -> bool:
        """Return whether a coverage, or a rate of false positives, misses its bound by more than two standard errors."""
        bound = MOST_REJECTED if self.test else LEAST
        error = 2 * math.sqrt(bound * (1 - bound) / replicates)
        return rate > bound + error if self.test else rate < bound - error

    def is_doubtful(self, rate: float, replicates: int) -> bool:
        """Return whether a rate misses its bound, but by less than ``DOUBT`` standard errors."""
        bound = MOST_REJECTED if self.test else LEAST
        missed = rate - bound if self.test else bound - rate
        return 0 < missed < DOUBT * math.sqrt(bound * (1 - bound) / replicates)


def _scenarios(*arguments: tuple[float, ...], rare: Sequence[tuple[float, ...]] = ()) -> tuple[Scenario, ...]:
    return (*map(Scenario, arguments), *(Scenario(of, usual=False) for of in rare))


_TRUE_SHARES = _scenarios((0.1,), (0.3,), (0.5,), (0.9,))
_CHANGES = _scenarios((0.05, 0.15), (0.3, 0.3), rare=[(0.02, 0.02), (0.0, 0.03)])
_PAIRS = _scenarios((0.5, 0.5), (0.3, 0.5), (0.9, 0.8), (0.1, 0.1))
_CONFIDENT = _scenarios((1.5, 0.5), (1.0, 0.2), (0.5, -0.5))
_RATIOS = _scenarios((0.5, 0.6, 0.6), (0.1, 0.6, 0.6))
_MANY = tuple(design for design in DESIGNS if len(design.sizes) >= MIN_CLUSTERS)
_SINGLE = DESIGNS[-1:]

SECTIONS: Mapping[str, tuple[Kind, ...]] = {
    "Shares": (
        Kind(("share",), share, _TRUE_SHARES),
        Kind(("share of the answers that count",), share_of_some, _TRUE_SHARES),
        Kind((f"share, stopped at a width of {_WIDTH:g}",), stopped_share, _TRUE_SHARES),
        Kind(("share of independent items",), independent_share, _TRUE_SHARES, designs=_SINGLE),
        Kind(("share in a benchmark's table",), bootstrap_share, _TRUE_SHARES, most=BOOTSTRAP_REPLICATES),
        Kind(("share among some labels",), bootstrap_ratio, _TRUE_SHARES, most=BOOTSTRAP_REPLICATES),
        Kind(("mean of three tasks",), task_mean, _TRUE_SHARES),
    ),
    "Differences": (
        Kind(("two runs",), paired_difference, _CHANGES),
        Kind(("two conditions of a run",), condition_difference, _CHANGES, most=BOOTSTRAP_REPLICATES),
        Kind(("two runs, share among some labels",), ratio_difference, _PAIRS, most=BOOTSTRAP_REPLICATES),
        Kind(("two studies",), unpaired_difference, _PAIRS),
        Kind(("mean of two tasks less a third",), mean_less_task, _TRUE_SHARES),
    ),
    "Confidences, curves, agreement, utility": (
        Kind(("Brier score",), brier, _CONFIDENT, most=BOOTSTRAP_REPLICATES),
        Kind(("calibration error",), calibration_error, _CONFIDENT, most=BOOTSTRAP_REPLICATES, designs=_MANY),
        Kind(("AUROC",), area, _scenarios((0.5, 0.5), (0.5, 0.75), (0.2, 0.75), rare=[(0.5, 0.95)])),
        Kind(("point of equality", "slope of a curve"), curve, _scenarios((-2.0, 4.0)), most=CURVE_REPLICATES),
        Kind(("mean log-odds",), log_odds, _scenarios((0.0,), (0.5,)), most=BOOTSTRAP_REPLICATES),
        Kind(
            ("agreement", "kappa", "AC1"),
            agreement,
            _scenarios((0.6, 0.5, 0.3, 0.2), (0.8, 0.5, 0.5), rare=[(0.6, 0.9, 0.1)]),
            most=BOOTSTRAP_REPLICATES,
        ),
        Kind(
            ("utility",),
            mean_utility,
            _scenarios((0.2, 0.3, 0.4), (0.1, 0.1, 0.1), rare=[(0.05, 0.02, 0.03)]),
            most=BOOTSTRAP_REPLICATES,
        ),
    ),
    "A judge and people": (
        Kind(
            ("corrected", "by people alone", "by the judge alone"), corrected, _TRUE_SHARES, most=BOOTSTRAP_REPLICATES
        ),
    ),
}
"""The kinds of intervals, by the heading of their table."""

TESTS: tuple[Kind, ...] = (
    Kind(("p of two runs",), paired_test, _scenarios((0.02,), (0.1,), (0.3,)), test=True),
    Kind(("p of two runs, uneven changes",), uneven_test, _scenarios((0.02,), (0.1,), (0.3,)), test=True),
    Kind(
        ("p of a share among some labels",),
        ratio_test,
        _RATIOS,
        most=BOOTSTRAP_REPLICATES,
        test=True,
    ),
    Kind(
        ("p of a share among some labels, one run abstains more",),
        ratio_test,
        _scenarios((0.5, 0.8, 0.4), (0.1, 0.8, 0.4)),
        most=BOOTSTRAP_REPLICATES,
        test=True,
    ),
    Kind(
        ("not worse than the margin",),
        non_inferiority,
        _scenarios((0.0, 0.03), (0.02, 0.05), (0.05, 0.15), (0.3, 0.3)),
        test=True,
    ),
)

_BORROWED_SHARES = _scenarios((0.3,), (0.5,))
BORROWED_CORRELATIONS = (0.2, 0.6)
BORROWED_KINDS: tuple[Kind, ...] = (
    Kind(("share",), share, _BORROWED_SHARES),
    Kind(("share in a benchmark's table",), bootstrap_share, _BORROWED_SHARES, most=BOOTSTRAP_REPLICATES),
    Kind(("difference of two runs",), paired_difference, _scenarios((0.05, 0.15), (0.3, 0.3))),
    Kind(("AUROC",), area, _scenarios((0.5, 0.75))),
    Kind(("p of two runs",), paired_test, _scenarios((0.1,), (0.3,)), test=True),
    Kind(("p of a share among some labels",), ratio_test, _RATIOS, most=BOOTSTRAP_REPLICATES, test=True),
)


@dataclass(frozen=True)
class Rate:
    """A measured coverage, or rate of false positives: the least or worst of the scenarios, and each of these."""

    kind: Kind
    name: str
    design: Design
    correlation: float
    borrowed: str
    rates: tuple[float, ...]
    replicates: tuple[int, ...]
    undefined: float
    """The greatest share of a scenario's replicates that have no interval; they do not count."""

    @property
    def worst(self) -> float:
        """The least coverage, or the highest rate of false positives."""
        return max(self.rates) if self.kind.test else min(self.rates)

    @property
    def failing(self) -> tuple[Scenario, ...]:
        """The scenarios that miss their bound."""
        of_each = zip(self.kind.scenarios, self.rates, self.replicates, strict=True)
        return tuple(scenario for scenario, rate, size in of_each if self.kind.fails(rate, size))

    @property
    def fails(self) -> bool:
        """Whether a scenario misses its bound."""
        return bool(self.failing)

    @property
    def usual(self) -> list[float]:
        """The rates that count for the mean coverage."""
        if len(self.design.sizes) < FEW:
            return []
        return [rate for rate, scenario in zip(self.rates, self.kind.scenarios, strict=True) if scenario.usual]


def measure(
    kind: Kind, design: Design, correlation: float, replicates: int = REPLICATES, borrowed: str = ""
) -> list[Rate]:
    """Return the rates of a kind in a design, one for each of its names."""
    fewest = min(replicates, kind.most)
    rates, sizes, undefined = [], [], np.zeros(len(kind.names))
    for number, scenario in enumerate(kind.scenarios):
        key = "|".join(map(str, (*kind.names, design.name, correlation, borrowed, number)))
        random = np.random.default_rng(zlib.crc32(key.encode()))
        study = Study(random, np.array(design.sizes), correlation, fewest, BORROWED.get(borrowed))
        results = _results(kind, study, scenario)
        if fewest < replicates and any(kind.is_doubtful(rate, fewest) for rate in np.nanmean(results, 0).tolist()):
            more = min(replicates, REFINED * fewest)
            results = _results(kind, replace(study, replicates=more), scenario)
        rates.append(np.nanmean(results, 0).tolist())
        sizes.append(len(results))
        undefined = np.maximum(undefined, np.isnan(results).mean(0))
    return [
        Rate(kind, name, design, correlation, borrowed, tuple(of[place] for of in rates), tuple(sizes), float(missing))
        for place, (name, missing) in enumerate(zip(kind.names, undefined, strict=True))
    ]


def _results(kind: Kind, study: Study, scenario: Scenario) -> Array:
    results = np.array(list(kind.measure(study, *scenario.arguments)), float)
    return results.reshape(study.replicates, len(kind.names))


# --- the page ------------------------------------------------------------------------------------

_CLUSTERS = """\
A cluster is all answers that share a picture, a page or a document. They are right or wrong together, so 10 questions about one
page are less evidence than questions about 10 pages. An answer that also shows a page of another cluster, such as a borrowed
picture, counts in both. One cluster alone gives no interval. Quantiles are Student's, with one degree of freedom less than there
are clusters.""".replace("\n", " ")

_METHODS = (
    ("share of answers", "score interval of the effective sample size, by sums over clusters", "clustered_wilson"),
    ("other metric between 0 and 1", "the same, by what each cluster adds to the metric", "metric_estimate"),
    ("mean of tasks", "the same, by the lesser of two effective sizes", "macro_average"),
    (
        "difference of two runs' shares",
        "from the intervals of gains and losses (Zou and Donner 2008)",
        "share_difference",
    ),
    ("other difference, kappa, AC1", "bootstrap variance, two half clusters (Bonett and Price 2012)", "estimate"),
    ("difference of two studies", "from both intervals (Newcombe 1998)", "independent_difference"),
    ("slope, mean log-odds", "Student's, by the variance of the bootstrap", "estimate"),
    ("point of equality", "bootstrap percentiles, widened (Hesterberg 2015)", "estimate"),
    ("calibration error", "basic bootstrap, from 0 where chance explains it", "calibration_error_estimate"),
    ("AUROC", "the share's, by the variance over clusters (Obuchowski 1997)", "auroc_estimate"),
    ("judge corrected by people", "the share's, by the bootstrap of PPI (Zrnic 2024)", "correct"),
    ("p of a share of all answers", "the larger of the interval's and the sign-flip test's", "paired_p"),
    ("p of another metric", "the same", "difference_p"),
    ("not worse than a margin", "one-sided bound of the difference", "non_inferiority_p"),
    ("share of independent items", "Wilson's score interval (1927)", "wilson"),
)

_SETTING = """\
`docs/intervals.py` measures this with the code that fills the tables, on simulated answers whose truth is known. The answers
of a page come from normal variables that are correlated within the page. A cell of a table has four numbers, in %, for
correlations of {correlations}; each is the least coverage over the true values. These are shares of 0.1, 0.3, 0.5 and 0.9,
and gains and losses of 0.05 and 0.15, 0.3 and 0.3; rare ones are gains and losses of 0.02 and 0.02, 0 and 0.03, an AUROC of
0.95, a label of 10% for kappa, and mistakes of 2% to 5% for the utility. Closed formulas have {all:,} replicates of each
true value (a Monte-Carlo error of {all_error} points), the bootstrap {bootstrap:,} ({bootstrap_error}) with 400 to 1,000
resamples, and curves {curves:,} ({curves_error}). What misses its bound by less than {doubt} errors is measured anew with
{refined} times as many.""".replace("\n", " ")

_TESTED = """\
Two runs do not differ in truth, or one is worse by exactly the margin; the highest rate over the true values, of tests at 5%. In
the second row, whole pages gain and single answers lose.""".replace("\n", " ")

_BORROWED_NOTE = """\
Each question shows a picture of another page, too, drawn at random. The three numbers: the own page alone decides, half and half,
the borrowed page alone; each is the worst of the correlations {correlations}.""".replace("\n", " ")


def page(
    sections: Mapping[str, Sequence[Rate]], tests: Sequence[Rate], borrowed: Sequence[Rate], replicates: int
) -> str:
    """Return the page as Markdown."""
    bootstrap, curves = min(replicates, BOOTSTRAP_REPLICATES), min(replicates, CURVE_REPLICATES)
    setting = _SETTING.format(
        correlations=_listed(CORRELATIONS),
        all=replicates,
        all_error=_monte_carlo_error(replicates),
        bootstrap=bootstrap,
        bootstrap_error=_monte_carlo_error(bootstrap),
        curves=curves,
        curves_error=_monte_carlo_error(curves),
        doubt=DOUBT,
        refined=REFINED,
    )
    intervals = [rate for rates in sections.values() for rate in rates]
    methods = [(number, method, f"`{function}`") for number, method, function in _METHODS]
    lines = ["# Intervals", "", REFERENCE, "", *_answer(intervals, tests, borrowed), "", setting]
    lines += ["", "## Clusters and methods", "", _CLUSTERS, "", *_table(("number", "method", "function"), methods)]
    for title, rates in sections.items():
        lines += ["", f"## {title}", "", *_rates_table(rates), *_undefined_note(rates)]
    lines += ["", "## False positives", "", _TESTED, "", *_rates_table(tests)]
    note = _BORROWED_NOTE.format(correlations=_listed(BORROWED_CORRELATIONS))
    lines += ["", "## Borrowed pictures", "", note, "", *_rates_table(borrowed), ""]
    return "\n".join(lines)


def _answer(intervals: Sequence[Rate], tests: Sequence[Rate], borrowed: Sequence[Rate]) -> Iterator[str]:
    covered = [*intervals, *(rate for rate in borrowed if not rate.kind.test)]
    rejected = [*tests, *(rate for rate in borrowed if rate.kind.test)]
    least, most = min(covered, key=lambda rate: rate.worst), max(rejected, key=lambda rate: rate.worst)
    mean = _mean(rate for cell in covered for rate in cell.usual)
    failing = [rate for rate in (*covered, *rejected) if rate.fails]
    yield (
        f"The least coverage of a 95% interval over {len(covered)} cells is {_percent(least.worst)}% ({_place(least)}). The mean "
        f"is {_percent(mean)}% over cells with at least {FEW} clusters and shares between 0.1 and 0.9. The highest rate of false "
        f"positives of a test at 5% is {_percent(most.worst)}% ({_place(most)})."
    )
    yield ""
    wanted = f"{LEAST:.0%} coverage or {MOST_REJECTED:.0%} false positives"
    if failing:
        yield (
            f"{len(failing)} of {len(covered) + len(rejected)} cells, in bold below, miss the requirement ({wanted}) by over "
            "two standard errors:"
        )
        yield ""
        for (name, is_borrowed), cells in _by_name(failing).items():
            worst = _worst(cells)
            pictures = ", borrowed pictures" if is_borrowed else ""
            number = f"{len(cells)} cell{'s' * (len(cells) > 1)}"
            number += "" if any(scenario.usual for cell in cells for scenario in cell.failing) else ", rare values only"
            yield f"- {name}{pictures}: {number}; the worst {_percent(worst.worst)}% ({_place(worst, named=False)})"
    else:
        yield f"All cells meet the requirement ({wanted}), up to two standard errors."
    means = {name: _mean(rates) for (name, _), cells in _by_name(intervals).items() if (rates := _usual(cells))}
    for words, outside in (
        ("below {:.0%}", {name: mean for name, mean in means.items() if mean < MEANS[0]}),
        (
            "above {:.0%}, so wider intervals than needed",
            {name: of for name, of in means.items() if of > MEANS[1]},
        ),
    ):
        if outside:
            bound = MEANS[0] if "below" in words else MEANS[1]
            listed = ", ".join(f"{name} {_percent(mean)}%" for name, mean in outside.items())
            yield ""
            yield f"Mean coverage {words.format(bound)}: {listed}."


def _usual(cells: Iterable[Rate]) -> list[float]:
    return [rate for cell in cells for rate in cell.usual]


def _mean(rates: Iterable[float]) -> float:
    return float(np.mean([*rates]))


def _worst(rates: Sequence[Rate]) -> Rate:
    return (max if rates[0].kind.test else min)(rates, key=lambda rate: rate.worst)


def _by_name(rates: Iterable[Rate]) -> dict[tuple[str, bool], list[Rate]]:
    """Return rates by the name of their kind, apart for borrowed pictures."""
    groups: dict[tuple[str, bool], list[Rate]] = {}
    for rate in rates:
        groups.setdefault((rate.name, bool(rate.borrowed)), []).append(rate)
    return groups


def _listed(numbers: Iterable[float]) -> str:
    *first, last = (f"{number:g}" for number in numbers)
    return f"{', '.join(first)} and {last}"


def _monte_carlo_error(replicates: int) -> str:
    return f"{100 * math.sqrt(0.05 * 0.95 / replicates):.1f}"


def _percent(rate: float) -> str:
    return f"{100 * rate:.1f}"


def _place(rate: Rate, *, named: bool = True) -> str:
    parts = [rate.name] if named else []
    parts += [
        rate.design.name,
        f"correlation {rate.correlation:g}",
        *([f"{rate.borrowed} decides"] if rate.borrowed else []),
    ]
    return ", ".join(parts)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _rates_table(rates: Sequence[Rate]) -> Iterator[str]:
    """Yield a table with a row for each kind, and a cell for each design with all its correlations."""
    rows = []
    for name in dict.fromkeys(rate.name for rate in rates):
        cells = []
        for design in DESIGNS:
            numbers: dict[str, list[Rate]] = {}
            for rate in rates:
                if (rate.name, rate.design) == (name, design):
                    numbers.setdefault(rate.borrowed or str(rate.correlation), []).append(rate)
            cells.append(" ".join(map(_number, numbers.values())))
        rows.append((name, *cells))
    yield from _table(("", *(design.name for design in DESIGNS)), rows)


def _number(rates: Sequence[Rate]) -> str:
    number = _percent(_worst(rates).worst)
    return f"**{number}**" if any(rate.fails for rate in rates) else number


def _undefined_note(rates: Sequence[Rate]) -> Iterator[str]:
    most = {name: max(cell.undefined for cell in cells) for (name, _), cells in _by_name(rates).items()}
    listed = ", ".join(f"{name} up to {part:.0%}" for name, part in most.items() if part > 0.01)
    if listed:
        yield ""
        yield f"Replicates without an interval, which do not count: {listed}."


def main(replicates: int = REPLICATES) -> None:
    """Measure all cells, and write the page."""
    start = time.monotonic()

    def rates(kinds: Sequence[Kind], cases: Callable[[Design], Iterable[tuple[float, str]]]) -> list[Rate]:
        measured = []
        for kind in kinds:
            for design in kind.designs:
                for correlation, borrowed in cases(design):
                    measured += measure(kind, design, correlation, replicates, borrowed)
            print(f"{time.monotonic() - start:6.0f} s  {', '.join(kind.names)}", flush=True)
        return measured

    def plain(design: Design) -> list[tuple[float, str]]:
        return [(correlation, "") for correlation in design.correlations]

    def with_pictures(design: Design) -> list[tuple[float, str]]:
        return [(correlation, borrowed) for borrowed in BORROWED for correlation in BORROWED_CORRELATIONS]

    sections = {title: rates(kinds, plain) for title, kinds in SECTIONS.items()}
    tests, borrowed = rates(TESTS, plain), rates(BORROWED_KINDS, with_pictures)
    PAGE.write_text(page(sections, tests, borrowed, replicates), encoding="utf-8")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
