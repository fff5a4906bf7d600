"""Confidence intervals: published values, coverage, degenerate counts."""

from __future__ import annotations

import math
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.stats.intervals import (
    ClusterSums,
    clustered_wilson,
    distinct_rows,
    estimate,
    independent_difference,
    macro_average,
    resample,
    wilson,
)
from benchmarks.vocabulary import Estimate


def _share(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Successes over trials; cells are (successes, trials)."""
    share: NDArray[np.float64] = np.divide(
        totals[..., 0], totals[..., 1], out=np.full(totals.shape[:-1], np.nan), where=totals[..., 1] > 0
    )
    return share


def _interval(counts: NDArray[np.int64], *, n: int, resamples: int = 1000, seed: int = 0, reason: str = "") -> Estimate:
    """Return the share of summed counts with its bootstrap interval, as the tables compute it."""
    return estimate(float(_share(counts.sum(0))), _share(resample(counts, resamples, seed)), n, reason=reason)


def _coins(n: int, p: float, seed: int) -> NDArray[np.int64]:
    heads = np.random.default_rng(seed).random(n) < p
    return np.stack([heads, np.ones(n)], axis=1).astype(np.int64)


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


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_clustered_wilson_of_single_answers_is_wilson(hits: list[bool]) -> None:
    interval, plain = clustered_wilson(hits, [1] * len(hits)), wilson(sum(hits), len(hits))
    assert (interval.value, interval.n) == (plain.value, plain.n)
    assert (interval.low, interval.high) == pytest.approx((plain.low, plain.high))


def test_correlated_answers_widen_the_interval() -> None:
    def width(interval: Estimate) -> float:
        assert interval.low is not None
        assert interval.high is not None
        return interval.high - interval.low

    together = clustered_wilson([2, 0] * 40, [2] * 80)  # each example's two answers are the same
    assert together.n == 160
    assert width(together) == pytest.approx(width(wilson(40, 80)))
    assert width(clustered_wilson([1] * 80, [2] * 80)) == pytest.approx(width(wilson(80, 160))), "never as more"
    assert width(clustered_wilson([2] * 30, [2] * 30)) == pytest.approx(width(wilson(30, 30))), (
        "all alike: the examples"
    )
    assert clustered_wilson([], []).value is None


@given(st.lists(st.integers(1, 8).flatmap(lambda size: st.tuples(st.integers(0, size), st.just(size)))))
def test_sums_over_groups_give_the_same_interval(groups: list[tuple[int, int]]) -> None:
    sums = ClusterSums()
    for hits, size in groups:
        sums = sums.plus(ClusterSums(1, hits, size, hits * hits, hits * size, size * size))
    expected = clustered_wilson([hits for hits, _ in groups], [size for _, size in groups])
    assert sums.wilson().n == expected.n
    for own, other in ((sums.wilson().value, expected.value), (sums.wilson().low, expected.low)):
        assert own == (other if other is None else pytest.approx(other, abs=1e-9))
    assert sums.plus(sums).plus(sums, -1) == sums


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
        interval = _interval(_coins(120, 0.3, trial), n=120, resamples=300, seed=trial)
        assert interval.low is not None
        assert interval.high is not None
        covered += interval.low <= 0.3 <= interval.high
    assert 0.88 <= covered / 200 <= 0.99


def test_single_share_is_wilson_and_difference_is_newcombe() -> None:
    assert macro_average([1], [5]) == pytest.approx(wilson(1, 5))
    # Newcombe 1998, table II, example (a), method 10: 56/70 - 48/80.
    interval = independent_difference(wilson(56, 70), wilson(48, 80))
    assert (interval.value, interval.low, interval.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert independent_difference(wilson(56, 70), Estimate(0.6)) == Estimate(0.8 - 0.6, n=70)
    assert macro_average([1, 0], [5, 0]).value is None


SIZES = ([1] * 15, [4] * 15, [40] * 15, [1] + [100] * 14, list(range(1, 16)))
TRUTHS = (np.linspace(0.03, 0.6, 15), np.full(15, 0.05), np.array([0.02] * 8 + [0.98] * 7))


@pytest.mark.parametrize("truth", TRUTHS, ids=["mixed", "low", "either"])
@pytest.mark.parametrize("sizes", SIZES, ids=["1", "4", "40", "1 and 100", "1 to 15"])
def test_interval_of_a_task_mean_covers_the_truth_for_few_answers(sizes: list[int], truth: NDArray[np.float64]) -> None:
    """Fifteen tasks, 500 runs; a percentile bootstrap of the same answers covers as little as .5."""
    rng = np.random.default_rng(1)
    averages = [macro_average(rng.binomial(sizes, truth).tolist(), sizes) for _ in range(500)]
    covered = sum((average.low or 0) <= truth.mean() <= (average.high or 0) for average in averages)
    assert covered / 500 >= 0.925


def test_groups_are_resampled_as_units() -> None:
    """Ten copies of each answer in a group make the interval no narrower."""
    single = _coins(60, 0.5, 1)
    single_interval, repeated_interval = (_interval(counts, n=1, seed=4) for counts in (single, single * 10))
    assert (single_interval.low, single_interval.high) == (repeated_interval.low, repeated_interval.high)
    assert single_interval.low is not None
    assert single_interval.high is not None
    alone = _interval(np.repeat(single, 10, axis=0), n=1, seed=4)
    assert alone.low is not None
    assert alone.high is not None
    assert alone.high - alone.low < 0.6 * (single_interval.high - single_interval.low)


def test_interval_does_not_depend_on_group_order() -> None:
    counts = _coins(80, 0.4, 2)
    first = _interval(counts, n=80, seed=5)
    assert first == _interval(counts[::-1], n=80, seed=5)
    assert first != _interval(counts, n=80, seed=6)


def test_undefined_is_na_with_a_reason() -> None:
    interval = _interval(np.zeros((5, 2), int), n=0, reason="no trials")
    assert (interval.value, interval.low, interval.high, interval.reason) == (None, None, None, "no trials")


def test_undefined_resamples_are_left_out() -> None:
    """One group of three has trials: without it a resample is undefined, with it the share is 1."""
    counts = np.array([[1, 1], [0, 0], [0, 0]])
    drawn = _share(resample(counts, 500, 0))
    assert 0.2 < np.isnan(drawn).mean() < 0.4
    interval = _interval(counts, n=1, resamples=500)
    assert (interval.value, interval.low, interval.high) == (1.0, 1.0, 1.0)


def test_a_single_group_has_no_interval() -> None:
    interval = _interval(np.array([[3, 4]]), n=4)
    assert (interval.value, interval.low, interval.high) == (0.75, None, None)


def test_no_resamples_no_interval() -> None:
    assert estimate(0.5, np.zeros(0), 3).low is None


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
def test_percentiles_are_numpys(values: list[float]) -> None:
    interval = estimate(0.0, np.array([*values, math.nan]), 1)
    low, high = np.quantile(values, [(1 - 0.95) / 2, 1 - (1 - 0.95) / 2])
    assert (interval.low, interval.high) == (float(low), float(high))


@given(st.lists(st.tuples(*[st.sampled_from([-300.0, -1.0, 0.0, 0.5, 1.0, 2.0, 255.0])] * 3), max_size=30))
def test_distinct_rows_are_those_of_numpy(rows: list[tuple[float, ...]]) -> None:
    counts = np.array(rows).reshape(-1, 3)
    expected, sizes = np.unique(counts, axis=0, return_counts=True)
    distinct, size = distinct_rows(counts)
    assert distinct.tolist() == expected.tolist()
    assert size.tolist() == sizes.tolist()
