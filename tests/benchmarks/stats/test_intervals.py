"""Confidence intervals: published values, coverage, degenerate counts."""

from __future__ import annotations

import math
import time
import tracemalloc
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.stats.intervals import (
    DIFFERENCE,
    Draws,
    clustered_wilson,
    difference_estimate,
    distinct_rows,
    estimate,
    independent_difference,
    influence,
    macro_average,
    resample,
    share_estimate,
    student_cdf,
    student_quantile,
    wilson,
)
from benchmarks.stats.paired_tests import difference_p
from benchmarks.vocabulary import Estimate


def _share(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Successes over trials; cells are (successes, trials)."""
    share: NDArray[np.float64] = np.divide(
        totals[..., 0], totals[..., 1], out=np.full(totals.shape[:-1], np.nan), where=totals[..., 1] > 0
    )
    return share


def _interval(counts: NDArray[np.int64], *, n: int, resamples: int = 1000, seed: int = 0, reason: str = "") -> Estimate:
    """Return the share of summed counts with its bootstrap interval, as the tables compute it."""
    clusters = int((counts[:, 1] > 0).sum())
    replicates = _share(resample(counts, resamples, seed))
    return estimate(float(_share(counts.sum(0))), replicates, n, clusters=clusters, reason=reason)


def _coins(n: int, p: float, seed: int) -> NDArray[np.int64]:
    heads = np.random.default_rng(seed).random(n) < p
    return np.stack([heads, np.ones(n)], axis=1).astype(np.int64)


def _ends(interval: Estimate) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


def _width(interval: Estimate) -> float:
    low, high = _ends(interval)
    return high - low


def _correlated(random: np.random.Generator, clusters: int, size: int, share: float, correlation: float) -> list[int]:
    """Return the successes of clusters whose own shares are drawn from a beta distribution (Griffiths 1973)."""
    rest = (1 - correlation) / correlation
    own = random.beta(share * rest, (1 - share) * rest, clusters)
    successes: list[int] = random.binomial(size, own).tolist()
    return successes


def test_wilson_is_the_published_interval() -> None:
    # Newcombe (1998), Statistics in Medicine 17, Table I, method 3: 81/263, 15/148, 0/20, 1/29.
    for successes, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        interval = wilson(successes, n)
        assert interval.value == successes / n
        assert interval.low == pytest.approx(low, abs=5e-5)
        assert interval.high == pytest.approx(high, abs=5e-5)


@given(st.lists(st.booleans(), min_size=2, max_size=200))
def test_clustered_wilson_of_single_answers_contains_wilson(hits: list[bool]) -> None:
    interval, plain = clustered_wilson(hits, [1] * len(hits)), wilson(sum(hits), len(hits))
    assert (interval.value, interval.n) == (plain.value, plain.n)
    (low, high), (least, greatest) = _ends(interval), _ends(plain)
    assert low <= least + 1e-12
    assert greatest - 1e-12 <= high


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.9, 1.0])
@pytest.mark.parametrize(("answers", "apart"), [(30, 0.1), (100, 0.03), (500, 0.006), (2000, 0.0015)])
def test_clustered_wilson_of_many_single_answers_approaches_wilson(answers: int, apart: float, share: float) -> None:
    hits = round(answers * share)
    interval = clustered_wilson([1] * hits + [0] * (answers - hits), [1] * answers)
    plain = wilson(hits, answers)
    assert _width(interval) == pytest.approx(_width(plain), rel=apart)
    assert _ends(interval) == pytest.approx(_ends(plain), abs=apart * _width(plain))


@given(st.lists(st.integers(1, 8).flatmap(lambda size: st.tuples(st.integers(0, size), st.just(size))), min_size=2))
def test_a_share_has_a_width_and_contains_its_value(clusters: list[tuple[int, int]]) -> None:
    hits, sizes = [hits for hits, _ in clusters], [size for _, size in clusters]
    interval = clustered_wilson(hits, sizes)
    low, high = _ends(interval)
    assert interval.value == pytest.approx(sum(hits) / sum(sizes))
    assert interval.n == sum(sizes)
    assert 0 <= low <= sum(hits) / sum(sizes) <= high <= 1
    assert low < high
    assert _ends(interval) == pytest.approx(_ends(clustered_wilson([*hits, 0], [*sizes, 0]))), "an empty cluster"
    assert _width(clustered_wilson(hits, sizes, confidence=0.99)) > _width(interval)


def test_one_cluster_has_no_interval() -> None:
    assert clustered_wilson([3, 0], [4, 0]) == Estimate(0.75, n=4)
    assert macro_average(np.array([[1, 3]]), np.array([[2, 4]])) == Estimate(0.625, n=6)
    assert difference_estimate(0.25, 0.0, 1, 8) == Estimate(0.25, n=8)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize(("clusters", "size"), [(5, 10), (20, 10), (60, 4)])
def test_share_over_clusters_covers_the_truth(clusters: int, size: int, share: float) -> None:
    """500 runs of answers that are correlated by 0.4 within a cluster; as independent, they cover as few as half."""
    random = np.random.default_rng(1)
    covered = independent = 0
    for _ in range(500):
        hits = _correlated(random, clusters, size, share, 0.4)
        low, high = _ends(clustered_wilson(hits, [size] * clusters))
        covered += low <= share <= high
        low, high = _ends(wilson(sum(hits), size * clusters))
        independent += low <= share <= high
    assert covered / 500 >= 0.93
    assert independent / 500 <= 0.9


def test_correlated_answers_widen_the_interval() -> None:
    together = clustered_wilson([2, 0] * 40, [2] * 80)  # each cluster's two answers are the same
    assert together.n == 160
    assert _width(together) == pytest.approx(_width(wilson(40, 80)), rel=0.02)
    assert _width(together) == pytest.approx(_width(clustered_wilson([1, 0] * 40, [1] * 80)))
    opposed = clustered_wilson([1] * 80, [2] * 80)
    assert _width(wilson(80, 160)) < _width(opposed) < 1.02 * _width(wilson(80, 160)), "never as of more answers"
    alike = _width(clustered_wilson([2] * 30, [2] * 30))
    assert alike == pytest.approx(_width(clustered_wilson([1] * 30, [1] * 30))), "all alike: as of one answer each"
    assert alike == pytest.approx(_width(wilson(30, 30)), rel=0.1)
    assert clustered_wilson([], []).value is None


# Student's t, two-sided 95% (Abramowitz and Stegun 1964, table 26.10).
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 10: 2.228, 29: 2.045, 30: 2.042, 120: 1.980, 5000: 1.960}


@pytest.mark.parametrize(("degrees", "expected"), list(STUDENT.items()))
def test_students_quantile_is_the_published_one(degrees: int, expected: float) -> None:
    assert student_quantile(0.975, degrees) == pytest.approx(expected, abs=6e-4)
    assert student_cdf(student_quantile(0.975, degrees), degrees) == pytest.approx(0.975, abs=1e-9)
    assert student_cdf(-expected, degrees) == pytest.approx(1 - student_cdf(expected, degrees), abs=1e-12)
    assert student_cdf(0, degrees) == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("degrees", [1, 2, 3, 7, 20, 99, 1000, 2000])
def test_students_t_is_that_of_scipy(degrees: int) -> None:
    student = pytest.importorskip("scipy.stats").t
    for t in (-40.0, -3.0, -0.1, 0.0, 0.5, 2.0, 12.0):
        assert student_cdf(t, degrees) == pytest.approx(student.cdf(t, degrees), abs=1e-10)
    for probability in (0.5, 0.8, 0.95, 0.975, 0.999):
        expected = student.ppf(probability, degrees)
        assert student_quantile(probability, degrees) == pytest.approx(expected, rel=1e-8, abs=1e-9)


def test_replicates_of_a_share_and_of_a_difference_count_by_their_variance() -> None:
    drawn = np.array([0.2, 0.4, 0.4, 0.6])
    assert estimate(0.4, drawn, 30, clusters=12) == share_estimate(0.4, float(drawn.var()), 12, 30)
    difference = estimate(-0.4, -drawn, 30, clusters=12, within=DIFFERENCE)
    assert difference == difference_estimate(-0.4, float(drawn.var()), 12, 30)
    assert difference.low is not None
    assert difference.low < -0.4


def test_a_difference_without_variance_keeps_a_width() -> None:
    # Bonett and Price (2012) for identical runs: 1.96 sqrt(2) / (n + 2), with half a cluster more on each side here.
    few, many = (difference_estimate(0.0, 0.0, clusters, 400) for clusters in (20, 2000))
    assert _ends(few) == pytest.approx((-2.093 / 21 / math.sqrt(2), 2.093 / 21 / math.sqrt(2)), abs=1e-4)
    assert _width(many) == pytest.approx(2 * 1.96 / 2001 / math.sqrt(2), rel=1e-3)
    assert _ends(difference_estimate(1.0, 0.0, 3, 3))[1] == 1
    assert _ends(difference_estimate(-1.0, 0.0, 3, 3))[0] == -1


@given(
    value=st.floats(-1, 1),
    variance=st.one_of(st.just(0.0), st.floats(1e-6, 0.2)),
    clusters=st.integers(2, 300),
    confidence=st.sampled_from([0.5, 0.9, 0.95, 0.99]),
)
def test_p_of_a_difference_is_that_of_its_interval(
    value: float, variance: float, clusters: int, confidence: float
) -> None:
    """The interval leaves out 0 where p is below the rest of its confidence."""
    low, high = _ends(difference_estimate(value, variance, clusters, clusters, confidence))
    p = difference_p(value, variance, clusters, MANY_SIGNS)
    assert 0 <= p <= 1
    if abs(p - (1 - confidence)) > 1e-9:
        assert (p > 1 - confidence) == (low <= 0 <= high)


MANY_SIGNS = np.random.default_rng(0).normal(size=100)
"""What so many clusters add to a difference that a test of signs is left out."""


def test_a_wider_range_is_scaled() -> None:
    """A difference of two metrics between -1 and 1 is between -2 and 2."""
    drawn = np.random.default_rng(0).normal(-1.6, 0.1, 500)
    wide = estimate(-1.6, drawn, 30, clusters=30, within=(-2, 2))
    half = difference_estimate(-0.8, float((drawn / 2).var()), 30, 30)
    assert _ends(wide) == pytest.approx([2 * end for end in _ends(half)])
    low, high = _ends(wide)
    assert -2 <= low < -1.7
    assert high > -1.5


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [10, 40, 100])
def test_false_positive_rate_of_a_preference_is_five_percent(clusters: int) -> None:
    """The share of one of two labels among three, in two equal runs whose answers are correlated within clusters of three."""

    def preference(counts: NDArray[np.float64]) -> NDArray[np.float64]:
        return _share(np.stack([counts[..., 0], counts[..., :2].sum(-1)], axis=-1))

    random, rejected, outside = np.random.default_rng(clusters), 0, 0
    for trial in range(1000):
        ability = random.random((clusters, 1, 1))
        luck = np.where(random.random((clusters, 2, 3)) < 0.5, ability, random.random((clusters, 2, 3)))
        label = np.where(random.random(luck.shape) < 0.2, 2, random.random(luck.shape) < luck)
        draws = Draws.of((label[..., None] == np.arange(3)).sum(2), 500, trial)
        values, replicates = preference(draws.totals), draws.replicates(preference)
        difference, drawn = float(values[1] - values[0]), replicates[:, 1] - replicates[:, 0]
        counts = (label[..., None] == np.arange(3)).sum(2)
        moved, sizes = influence(preference, counts), counts.sum((1, 2))
        sums = moved[:, 1] - moved[:, 0] + difference * sizes / sizes.sum()
        rejected += difference_p(difference, float(drawn.var()), clusters, sums) <= 0.05
        low, high = _ends(estimate(difference, drawn, 1, clusters=clusters, within=DIFFERENCE))
        outside += not low <= 0 <= high
    assert rejected <= 65  # of 1,000; 5% and two standard errors
    assert rejected <= outside <= rejected + 20


def test_p_of_no_difference_and_of_one_cluster_is_1() -> None:
    assert difference_p(0.0, 0.01, 20, MANY_SIGNS) == 1
    assert difference_p(0.5, 0.01, 1, np.array([0.5])) == 1


@pytest.mark.parametrize("clusters", [4, 10, 400])
@pytest.mark.parametrize("differing", [1, 4, 10])
def test_p_is_at_least_that_of_as_many_coins(clusters: int, differing: int) -> None:
    """A few clusters that differ, all to one side, are as many equal tosses of a coin."""
    differing = min(clusters, differing)
    sums = np.zeros(clusters)
    sums[:differing] = -1 / clusters
    variance = float(sums.var()) / clusters
    assert difference_p(float(sums.sum()), variance, clusters, sums) >= 2 * 0.5**differing


def test_no_answers_are_na_not_zero() -> None:
    interval = wilson(0, 0)
    assert (interval.value, interval.low, interval.n) == (None, None, 0)
    assert interval.reason


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_contains_its_value_and_stays_in_the_unit_range(pair: tuple[int, int]) -> None:
    interval = wilson(*pair)
    assert interval.low is not None
    assert interval.value is not None
    assert interval.high is not None
    assert 0 <= interval.low <= interval.value <= interval.high <= 1


def test_interval_coverage_is_nominal() -> None:
    covered = 0
    for trial in range(200):
        low, high = _ends(_interval(_coins(120, 0.3, trial), n=120, resamples=300, seed=trial))
        covered += low <= 0.3 <= high
    assert 0.88 <= covered / 200 <= 0.99


@given(st.lists(st.integers(1, 8).flatmap(lambda size: st.tuples(st.integers(0, size), st.just(size))), min_size=1))
def test_mean_of_one_stratum_is_its_share(clusters: list[tuple[int, int]]) -> None:
    hits, sizes = np.array(clusters).T
    mean, share = macro_average(hits[:, None], sizes[:, None]), clustered_wilson(hits, sizes)
    assert mean.n == share.n
    assert mean.value == pytest.approx(share.value)
    assert mean.low == pytest.approx(share.low)
    assert mean.high == pytest.approx(share.high)


def test_difference_of_independent_shares_is_newcombe() -> None:
    # Newcombe 1998, table II, example (a), method 10: 56/70 - 48/80.
    interval = independent_difference(wilson(56, 70), wilson(48, 80))
    assert (interval.value, interval.low, interval.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert independent_difference(wilson(56, 70), Estimate(0.6)) == Estimate(0.8 - 0.6, n=70)


def test_mean_with_a_stratum_without_answers_is_na() -> None:
    empty = macro_average(np.array([[1, 0]]), np.array([[5, 0]]))
    assert (empty.value, empty.n, bool(empty.reason)) == (None, 5, True)


SIZES = ([1] * 15, [4] * 15, [40] * 15, [1] + [100] * 14, list(range(1, 16)))
TRUTHS = (np.linspace(0.03, 0.6, 15), np.full(15, 0.05), np.array([0.02] * 8 + [0.98] * 7))


@pytest.mark.parametrize("truth", TRUTHS, ids=["mixed", "low", "either"])
@pytest.mark.parametrize("sizes", SIZES, ids=["1", "4", "40", "1 and 100", "1 to 15"])
def test_interval_of_a_task_mean_covers_the_truth_for_few_answers(sizes: list[int], truth: NDArray[np.float64]) -> None:
    """Fifteen tasks of answers in clusters of their own, 500 runs; a percentile bootstrap covers as little as .5."""
    random, task = np.random.default_rng(1), np.repeat(np.arange(15), sizes)
    is_of = np.eye(15, dtype=np.int64)[task]
    averages = [macro_average(is_of * (random.random((len(task), 1)) < truth[task, None]), is_of) for _ in range(500)]
    covered = sum(low <= truth.mean() <= high for low, high in map(_ends, averages))
    assert covered / 500 >= 0.925


@pytest.mark.parametrize("truth", TRUTHS, ids=["mixed", "low", "either"])
@pytest.mark.parametrize("pages", [5, 20, 40])
def test_interval_of_a_task_mean_covers_the_truth_of_correlated_answers(pages: int, truth: NDArray[np.float64]) -> None:
    """Each page has a question of each task, and 0.4 of its answers are decided together."""
    random, covered = np.random.default_rng(1), 0
    for _ in range(500):
        luck = np.where(random.random((pages, 1)) < 0.4, random.random((pages, 1)), random.random((pages, 15)))
        low, high = _ends(macro_average((luck < truth).astype(np.int64), np.ones((pages, 15), np.int64)))
        covered += low <= truth.mean() <= high
    assert covered / 500 >= 0.925


def test_groups_are_resampled_as_units() -> None:
    """Ten copies of each answer in a group make the interval no narrower."""
    single = _coins(60, 0.5, 1)
    single_interval, repeated_interval = (_interval(counts, n=600, seed=4) for counts in (single, single * 10))
    assert _ends(single_interval) == _ends(repeated_interval)
    alone = _interval(np.repeat(single, 10, axis=0), n=600, seed=4)
    assert _width(alone) < 0.6 * _width(single_interval)


def test_interval_does_not_depend_on_group_order() -> None:
    counts = 2 * _coins(80, 0.4, 2)
    first = _interval(counts, n=160, seed=5)
    assert first == _interval(counts[::-1], n=160, seed=5)
    assert first != _interval(counts, n=160, seed=6)


def test_resamples_of_whole_counts_are_used_as_they_are() -> None:
    counts = 2 * _coins(80, 0.4, 2)
    draws = Draws.of(counts, 300, 4)
    assert draws.replicates(_share).tolist() == _share(resample(counts, 300, 4)).tolist()
    assert draws.at((1,)).replicates(lambda totals: totals).tolist() == resample(counts, 300, 4)[:, 1].tolist()


def test_resamples_of_shown_pages_have_the_linearised_variance() -> None:
    """Near the totals a ratio is as good as linear, so its variance is that of the deviations' sums over clusters."""
    random = np.random.default_rng(0)
    counts = np.stack([random.normal(0.3, 0.5, 50), random.normal(1, 0.6, 50)], axis=1)
    replicates = Draws.of(counts, 20_000, 1).replicates(_share)
    value = counts[:, 0].sum() / counts[:, 1].sum()
    variance = ((counts[:, 0] - value * counts[:, 1]) ** 2).sum() / counts[:, 1].sum() ** 2
    assert replicates.var() == pytest.approx(variance, rel=0.05)
    assert replicates.mean() == pytest.approx(value, abs=0.01)
    # A single cell is linear, and so the same as the bootstrap's.
    first = Draws.of(counts, 500, 1).at((0,)).replicates(lambda totals: totals)
    assert first == pytest.approx(resample(counts, 500, 1)[:, 0])


def test_undefined_is_na_with_a_reason() -> None:
    interval = _interval(np.zeros((5, 2), int), n=0, reason="no trials")
    assert (interval.value, interval.low, interval.high, interval.reason) == (None, None, None, "no trials")


def test_undefined_resamples_are_left_out() -> None:
    """One group of three has trials: without it a resample is undefined, with it the share is 1."""
    counts = np.array([[1, 1], [0, 0], [0, 0]])
    drawn = _share(resample(counts, 500, 0))
    assert 0.2 < np.isnan(drawn).mean() < 0.4
    assert set(drawn[~np.isnan(drawn)]) == {1.0}
    assert _interval(counts, n=1, resamples=500) == Estimate(1.0, n=1), "no others say how a group would differ"
    values = np.array([0.1, 0.4, 0.7])
    for within in (None, DIFFERENCE, (0.0, 1.0)):
        with_gaps = estimate(0.4, np.array([math.nan, 0.7, 0.1, math.nan, 0.4]), 9, clusters=5, within=within)
        assert with_gaps == estimate(0.4, values, 9, clusters=5, within=within)


def test_a_single_group_has_no_interval() -> None:
    interval = _interval(np.array([[3, 4]]), n=4)
    assert (interval.value, interval.low, interval.high) == (0.75, None, None)


def test_no_resamples_no_interval() -> None:
    assert estimate(0.5, np.zeros(0), 3, clusters=3) == Estimate(0.5, n=3)
    assert estimate(0.5, np.full(3, math.nan), 3, clusters=3) == Estimate(0.5, n=3)


@pytest.mark.slow
def test_fifty_thousand_different_groups_stay_within_memory_and_seconds() -> None:
    counts = np.stack([np.arange(50_000), np.full(50_000, 50_000)], axis=1)
    tracemalloc.start()
    started = time.process_time()
    interval = _interval(counts, n=50_000, resamples=1000)
    taken, peak = time.process_time() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low < 0.5 < interval.high
    assert interval.high - interval.low < 0.01
    assert taken < 20
    assert peak < 200e6


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_percentiles_of_many_clusters_are_numpys(values: list[float]) -> None:
    interval = estimate(0.0, np.array([*values, math.nan]), 1, clusters=10**18, within=None)
    low, high = np.quantile(values, [(1 - 0.95) / 2, 1 - (1 - 0.95) / 2])
    assert (interval.low, interval.high) == pytest.approx((float(low), float(high)), rel=1e-9, abs=1e-6)


def test_percentiles_of_few_clusters_are_further_out() -> None:
    # Hesterberg (2015), section 5.3: the normal tail beyond sqrt(n / (n - 1)) times Student's 2.776 for 5 clusters.
    values = np.linspace(0, 1, 100_001)
    beyond = NormalDist().cdf(-math.sqrt(5 / 4) * 2.776445)
    assert _ends(estimate(0.5, values, 5, clusters=5, within=None)) == pytest.approx((beyond, 1 - beyond), abs=1e-6)
    widths = [_width(estimate(0.5, values, 5, clusters=clusters, within=None)) for clusters in (3, 5, 30, 1000)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == pytest.approx(0.95, abs=1e-3)


@given(st.lists(st.tuples(*[st.sampled_from([-300.0, -1.0, 0.0, 0.5, 1.0, 2.0, 255.0])] * 3), max_size=30))
def test_distinct_rows_are_those_of_numpy(rows: list[tuple[float, ...]]) -> None:
    counts = np.array(rows).reshape(-1, 3)
    expected, sizes = np.unique(counts, axis=0, return_counts=True)
    distinct, size = distinct_rows(counts)
    assert distinct.tolist() == expected.tolist()
    assert size.tolist() == sizes.tolist()
