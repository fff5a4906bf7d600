"""Paired tests and bounds, against statsmodels and scipy, exhaustive enumeration, and simulated data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.cmc_bench.cmc_constants import ACCURATE
from benchmarks.registry import get_benchmark
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import DIFFERENCE, SHARE, clustered_wilson, student_quantile
from benchmarks.stats.paired_tests import (
    Difference,
    contributing_labels,
    holm,
    holm_by_hypothesis,
    hypothesis_numbers,
    metric_range,
    paired_p,
    share_difference,
    share_labels,
    sign_flip_test,
)
from benchmarks.vocabulary import Estimate, LabelMetrics
from tests.support.compared_runs import simulated

# statsmodels 0.15.0: mcnemar([[50, b], [c, 50]], exact=True).pvalue
MCNEMAR = {
    (0, 0): 1.0,
    (1, 0): 1.0,
    (0, 6): 0.03125,
    (3, 10): 0.09228515625,
    (33, 29): 0.7035366713552733,
    (49, 29): 0.030786495821399938,
    (82, 119): 0.01092642859398938,
    (600, 700): 0.0060157938610449395,
    (1, 40): 3.8198777474462986e-11,
}


@pytest.mark.parametrize(("lost", "gained"), list(MCNEMAR))
def test_sign_flip_test_of_single_answers_is_mcnemar_exact(lost: int, gained: int) -> None:
    p = sign_flip_test([-1] * lost + [0] * 100 + [1] * gained)
    assert p == pytest.approx(MCNEMAR[lost, gained], rel=1e-9)


@pytest.mark.slow
@settings(deadline=None)  # the first call imports scipy
@given(st.integers(0, 400), st.integers(0, 400))
def test_sign_flip_test_matches_the_binomial_test_of_scipy(lost: int, gained: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    expected = stats.binomtest(lost, lost + gained).pvalue if lost + gained else 1.0
    assert sign_flip_test([-1] * lost + [1] * gained) == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.integers(-4, 4), max_size=9))
def test_sign_flip_test_matches_enumeration(sums: list[int]) -> None:
    signs = itertools.product([-1, 1], repeat=len(sums))
    as_far = [abs(sum(s * d for s, d in zip(sign, sums, strict=True))) >= abs(sum(sums)) for sign in signs]
    assert sign_flip_test(sums) == pytest.approx(sum(as_far) / len(as_far), rel=1e-9)


def test_holm_matches_statsmodels() -> None:
    # statsmodels 0.15.0: multipletests(p, method="holm")[1]
    corrected = holm([0.01, 0.04, 0.03, 0.005, 0.2, 1.0, 0.03])
    assert corrected == pytest.approx([0.06, 0.15, 0.15, 0.035, 0.4, 1.0, 0.15])
    assert holm([0.02, None, 0.03]) == pytest.approx([0.04, None, 0.04])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_p_and_preserves_order(chances: list[float]) -> None:
    corrected = [p for p in holm(chances) if p is not None]
    assert all(after >= before and after <= 1 for before, after in zip(chances, corrected, strict=True))
    order = np.argsort(chances, kind="stable")
    assert all(a <= b for a, b in itertools.pairwise(np.array(corrected)[order]))


def test_dependent_metrics_are_one_hypothesis() -> None:
    figures = get_benchmark("cmc-bench").label_metrics()
    assert figures is not None
    names = list(figures.of)
    numbers = dict(zip(names, hypothesis_numbers(names, figures), strict=True))
    assert numbers["MPB Img"] == numbers["MPB Txt"]
    assert len(set(numbers.values())) == len(names) - 1
    chances = [0.01, 0.02, None, 0.02, 0.5]
    corrected = holm_by_hypothesis(chances, ["a", "b", "c", "b", "d"])
    three = holm([0.01, 0.02, 0.5])
    assert corrected == [three[0], three[1], None, three[1], three[2]]


def test_metric_depends_on_the_labels_that_change_it() -> None:
    figures = get_benchmark("cmc-bench").label_metrics()
    assert figures is not None
    preference = contributing_labels(figures.of["MPB Img"], figures)
    counted = {
        (condition, label)
        for i, condition in enumerate(figures.conditions)
        for j, label in enumerate(figures.labels)
        if preference[i, j]
    }
    conflicts = ("image-correct", "text-correct", "both-wrong")
    assert counted == {(condition, label) for condition in conflicts for label in ("IMAGE", "TEXT")}
    assert contributing_labels(figures.of["MFR"], figures).sum() == len(conflicts) * len(figures.labels)
    assert contributing_labels(figures.of["ΔAcc"], figures).sum() == 4 * len(figures.labels)


CLUSTERS = st.lists(
    st.integers(1, 5).flatmap(
        lambda size: st.integers(0, size).flatmap(
            lambda gained: st.tuples(st.just(gained), st.integers(0, size - gained), st.just(size))
        )
    ),
    min_size=2,
    max_size=40,
)
"""Gains, losses and numbers of pairs of clusters."""


def _difference(clusters: list[tuple[int, int, int]]) -> Difference:
    gains, losses, sizes = np.array(clusters, dtype=float).T
    difference = share_difference(gains, losses, sizes)
    assert difference is not None
    return difference


def test_clusters_that_do_not_differ_do_not_correlate_by_their_rounding_errors() -> None:
    for weight in (1.0, 1.0 / 7):
        gains, losses, sizes = (np.full(4, count * weight) for count in (1.5, 1.5, 18.0))
        difference = share_difference(gains, losses, sizes)
        assert difference is not None
        assert difference.correlation == 0


def test_gains_that_do_not_differ_do_not_correlate_with_losses_that_do() -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        sizes = random.integers(3, 30, 40).astype(float)
        difference = share_difference(sizes * 0.3, random.random(40) * sizes * 0.5, sizes)
        assert difference is not None
        assert difference.correlation == 0


def test_interval_with_single_answers_is_that_of_the_cited_method() -> None:
    """Zou and Donner (2008) from two score intervals, for 8 gained and 2 lost of 40 pairs."""
    difference = _difference([(1, 0, 1)] * 8 + [(0, 1, 1)] * 2 + [(0, 0, 1)] * 30)
    gained, lost = clustered_wilson([1] * 8 + [0] * 32, [1] * 40), clustered_wilson([1] * 2 + [0] * 38, [1] * 40)
    assert gained.low is not None
    assert gained.high is not None
    assert lost.low is not None
    assert lost.high is not None
    correlation = -0.2 * 0.05 / math.sqrt(0.2 * 0.8 * 0.05 * 0.95)
    below, above = 0.2 - gained.low, gained.high - 0.2
    fewer, more = 0.05 - lost.low, lost.high - 0.05
    low = 0.15 - math.sqrt(below**2 + more**2 - 2 * correlation * below * more)
    high = 0.15 + math.sqrt(above**2 + fewer**2 - 2 * correlation * above * fewer)
    assert difference.value == pytest.approx(0.15)
    assert difference.interval() == pytest.approx((low, high))
    assert difference.estimate == Estimate(difference.value, *difference.interval(), n=40)
    assert difference.lower(0.975) == pytest.approx(low)
    assert difference.lower(0.95) == pytest.approx(difference.interval(0.9)[0])


@given(CLUSTERS)
def test_difference_of_the_runs_exchanged_is_the_opposite(clusters: list[tuple[int, int, int]]) -> None:
    difference = _difference(clusters)
    opposite = _difference([(lost, gained, size) for gained, lost, size in clusters])
    low, high = difference.interval()
    assert opposite.value == pytest.approx(-difference.value)
    assert opposite.interval() == pytest.approx((-high, -low))
    assert opposite.p == pytest.approx(difference.p, abs=1e-6)
    assert -1 <= low < high <= 1
    assert low <= difference.value <= high


@given(CLUSTERS, st.sampled_from([0.0, 0.02, 0.1, 0.3]))
def test_p_values_are_those_of_the_bounds(clusters: list[tuple[int, int, int]], margin: float) -> None:
    difference = _difference(clusters)
    p = difference.non_inferiority_p(margin)
    for confidence in (0.8, 0.95, 0.99):
        if abs(p - (1 - confidence)) > 1e-6:
            assert (p < 1 - confidence) == (difference.lower(confidence) > -margin)
        low, high = difference.interval(confidence)
        if abs(difference.p - (1 - confidence)) > 1e-6:
            assert (difference.p < 1 - confidence) == (not low <= 0 <= high)


@pytest.mark.parametrize("clusters", [5, 20, 200, 2000])
def test_bound_of_identical_runs_is_close_to_the_rule_of_three(clusters: int) -> None:
    """Of n clusters without a loss, the bound is -z^2 / (n + z^2), near -3 / n; with four answers each, no closer to 0."""
    difference = _difference([(0, 0, 4)] * clusters)
    z = student_quantile(0.95, clusters - 1)
    assert difference.lower() == pytest.approx(-z * z / (clusters + z * z))
    assert difference.lower() == pytest.approx(-3 / clusters, rel=0.25)
    assert difference.lower() == pytest.approx(_difference([(0, 0, 1)] * clusters).lower())
    assert difference.p == 1
    assert (difference.non_inferiority_p(0.05) < 0.05) == (difference.lower() > -0.05)


def test_one_cluster_and_no_pairs_claim_nothing() -> None:
    one = share_difference(np.array([3.0]), np.array([0.0]), np.array([4.0]))
    assert one is not None
    assert one.estimate == Estimate(0.75, n=4)
    assert (one.interval(), one.lower(), one.non_inferiority_p(0.9), one.p) == ((-1, 1), -1, 1, 1)
    assert share_difference(np.zeros(0), np.zeros(0), np.zeros(0)) is None
    assert share_difference(np.zeros(3), np.zeros(3), np.zeros(3)) is None


@pytest.mark.parametrize(("gained", "lost"), [(0.05, 0.05), (0.2, 0.05), (0.01, 0.03), (0.3, 0.3), (0.4, 0.01)])
@pytest.mark.parametrize(
    ("clusters", "size", "correlation"), [(50, 1, 0.0), (200, 1, 0.0), (10, 6, 0.4), (40, 4, 0.4), (100, 4, 0.2)]
)
def test_interval_and_bound_cover_the_true_difference(
    clusters: int, size: int, correlation: float, gained: float, lost: float
) -> None:
    """500 pairs of runs, whose changes within a cluster are decided together in a share of ``correlation`` of all pairs."""
    random, covered, above, independent = np.random.default_rng(1), 0, 0, 0
    truth, ones = gained - lost, np.ones(clusters * size)
    for _ in range(500):
        together = random.random((clusters, size)) < math.sqrt(correlation)
        luck = np.where(together, random.random((clusters, 1)), random.random((clusters, size)))
        gains, losses = (luck < gained).astype(float), (luck > 1 - lost).astype(float)
        difference = share_difference(gains.sum(1), losses.sum(1), np.full(clusters, float(size)))
        of_answers = share_difference(gains.ravel(), losses.ravel(), ones)
        assert difference is not None
        assert of_answers is not None
        low, high = difference.interval()
        covered += low <= truth <= high
        above += difference.lower() <= truth
        low, high = of_answers.interval()
        independent += low <= truth <= high
    assert covered / 500 >= 0.92
    assert above / 500 >= 0.92
    if correlation > 0.3:
        assert independent < covered - 25, "answers taken as independent cover less"


@pytest.mark.parametrize("times", [2, 9, 30])
@given(CLUSTERS)
def test_more_of_the_same_clusters_have_the_stated_error(times: int, clusters: list[tuple[int, int, int]]) -> None:
    many = _difference(clusters * 100)  # so many that pseudo clusters and Student's t do not matter
    more = _difference(clusters * 100 * times)
    assert more.value == pytest.approx(many.value)
    # Where clusters have no gains, no losses, or as many of both, the bound shrinks faster.
    assert more.error < many.error
    if many.correlation < 0.5:
        assert more.error < 1.02 * many.error / math.sqrt(times)
        if many.gained and many.lost:
            assert more.error == pytest.approx(many.error / math.sqrt(times), rel=0.1)


def test_shares_and_their_counts_are_detected() -> None:
    figures = get_benchmark("cmc-bench").label_metrics()
    assert figures is not None
    shares = {name: share_labels(of, figures) for name, of in figures.of.items()}
    assert {name for name, hits in shares.items() if hits is None} == {"MPB Img", "MPB Txt", "ΔAcc"}
    mfr = shares["MFR"]
    assert mfr is not None
    counted = {c: {figures.labels[i] for i in np.flatnonzero(mfr[j])} for j, c in enumerate(figures.conditions)}
    assert counted == {c: set(ACCURATE[c]) if c != "aligned" else set() for c in figures.conditions}
    clash = get_benchmark("clash").label_metrics()
    assert clash is not None
    assert all(share_labels(of, clash) is not None for of in clash.of.values())


@pytest.mark.parametrize(
    "figure",
    [
        lambda counts: counts[..., 0, 0],  # a count
        lambda counts: counts[..., 0, 0] / counts[..., 0, :].sum(-1) + counts[..., 1, 0] / counts[..., 1, :].sum(-1),
        lambda counts: counts[..., 0, 0] / counts.sum((-1, -2)),  # a share of answers of which some can never count
        lambda counts: (counts[..., 0, 0] / counts[..., 0, :].sum(-1)) ** 2,
    ],
)
def test_ratios_that_are_no_shares_are_rejected(figure: Callable[[Any], Any]) -> None:
    assert share_labels(figure, LabelMetrics(("a", "b"), ("X", "Y"), {"f": figure})) is None


@pytest.mark.slow
@pytest.mark.parametrize(("examples", "conditions"), [(40, 1), (40, 4), (150, 4)])
def test_false_positive_rate_of_equal_runs_is_five_percent(examples: int, conditions: int) -> None:
    random = np.random.default_rng(examples + conditions)
    rejected = outside = inferior = 0
    for _ in range(1000):
        right = simulated(random, examples, conditions, [0.0])
        gains, losses = (right[..., 1] & ~right[..., 0]).sum(1), (right[..., 0] & ~right[..., 1]).sum(1)
        difference = share_difference(gains.astype(float), losses.astype(float), np.full(examples, float(conditions)))
        assert difference is not None
        rejected += paired_p((gains - losses).astype(float), difference) <= 0.05
        low, high = difference.interval()
        outside += not low <= 0 <= high
        inferior += difference.non_inferiority_p(0.0) <= 0.05
    assert rejected <= 65  # of 1,000; 5% and two standard errors
    assert outside <= 65
    assert inferior <= 65


@pytest.mark.slow
@pytest.mark.parametrize("pages", [20, 60])
def test_false_positive_rate_with_borrowed_pages_is_five_percent(pages: int) -> None:
    """Of each page's four questions, a picture borrowed from another decides two; own pages alone reject far more."""
    random, rejected, of_own = np.random.default_rng(pages), 0, 0
    own = np.repeat(np.arange(pages), 4)
    for _ in range(1000):
        shown = random.integers(pages, size=len(own))
        deciding = np.where(np.arange(len(own)) % 2, own, shown)
        difficulty = random.normal(size=(2, pages))[:, deciding] + random.normal(size=len(own)) / 2
        before, after = difficulty + random.normal(size=(2, len(own))) / 2 > 0
        gains, losses, sizes = (
            Clusters.of(own, shown[:, None])
            .sums(np.stack([after & ~before, before & ~after, np.ones(len(own))], axis=1))
            .T
        )
        difference = share_difference(gains, losses, sizes)
        assert difference is not None
        rejected += paired_p(gains - losses, difference) <= 0.05
        of_own += sign_flip_test(np.bincount(own, after.astype(float) - before).astype(int).tolist()) <= 0.05
    assert rejected <= 65
    assert of_own > 100


@given(CLUSTERS)
def test_p_is_the_larger_of_the_exact_one_and_that_of_the_interval(clusters: list[tuple[int, int, int]]) -> None:
    sums = np.array([gained - lost for gained, lost, _ in clusters], dtype=float)
    difference = _difference(clusters)
    exact = sign_flip_test(sums.astype(int).tolist())
    assert paired_p(sums, difference) == max(difference.p, exact)
    assert paired_p(sums / 3, difference) >= difference.p, "thirds are rounded"


def test_range_of_a_metric_is_inferred_from_its_values() -> None:
    metrics = LabelMetrics(("a", "b"), ("X", "Y"), {})

    def share(counts: Any) -> Any:
        return counts[..., 0, 0] / counts[..., 0, :].sum(-1)

    assert metric_range(share, metrics) == SHARE
    assert metric_range(lambda counts: share(counts) - share(counts[..., ::-1, :]), metrics) == DIFFERENCE
    assert metric_range(lambda counts: counts[..., 0, 0] / counts[..., 0, 1], metrics) is None
    for name in ("cmc-bench", "clash"):
        own = get_benchmark(name).label_metrics()
        assert own is not None
        ranges = {metric: metric_range(of, own) for metric, of in own.of.items()}
        assert ranges == {metric: DIFFERENCE if metric == "ΔAcc" else SHARE for metric in own.of}
