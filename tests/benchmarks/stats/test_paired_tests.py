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

from benchmarks.base import LabelMetrics
from benchmarks.cmc_bench.constants import ACCURATE
from benchmarks.registry import get_benchmark
from benchmarks.stats.paired_tests import (
    contributing_labels,
    holm,
    holm_by_hypothesis,
    hypothesis_numbers,
    permutation_test,
    permuted_totals,
    share_difference,
    share_labels,
    sign_flip_test,
)
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


def test_permutation_test_matches_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(5)
    first, second = random.multinomial(3, [0.5, 0.3, 0.2], size=11), random.multinomial(3, [0.2, 0.3, 0.5], size=11)

    def preference(counts: Any) -> Any:
        return counts[..., 0] / (counts[..., 0] + counts[..., 1])

    def difference(before: Any, after: Any, axis: int) -> Any:
        """Return the difference by indices of groups, so that a group stays together."""
        both = np.stack([first, second])
        totals_before = both[before // 11, before % 11].sum(-2)
        totals_after = both[after // 11, after % 11].sum(-2)
        return preference(totals_after) - preference(totals_before)

    reference = stats.permutation_test(
        (np.arange(11), np.arange(11, 22)),
        difference,
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
        axis=-1,
    )
    counts = np.stack([first, second], 1).astype(float)
    p_value = permutation_test(counts, permuted_totals(counts, draws=40_000, seed=1), preference)
    assert p_value == pytest.approx(reference.pvalue, abs=0.01)


def test_undefined_metric_has_no_p_and_equal_metric_has_p_1() -> None:
    counts = np.array([[[2.0, 0.0], [2.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]])

    def ratio(of: Any) -> Any:
        return np.divide(of[..., 0], of[..., 1], out=np.full(of.shape[:-1], np.nan), where=of[..., 1] > 0)

    assert permutation_test(counts, permuted_totals(counts), ratio) is None
    assert permutation_test(counts, permuted_totals(counts), lambda of: of[..., 0]) == 1


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


def test_bound_with_single_answers_matches_bonett_price() -> None:
    # Bonett and Price (2012) for 1, 1, 7 and 12 of 21 pairs: each discordant count one more, n two more.
    p12, p21, n = 2 / 23, 8 / 23, 21
    half = 1.959964 * math.sqrt((p12 + p21 - (p12 - p21) ** 2) / (n + 2))
    difference = share_difference(np.array([-1.0] * 7 + [1.0] + [0.0] * 13), np.ones(n))
    assert difference is not None
    assert difference.value == pytest.approx(-6 / 21)
    assert difference.interval() == pytest.approx((p12 - p21 - half, p12 - p21 + half), abs=1e-6)
    assert difference.lower(0.975) == pytest.approx(p12 - p21 - half, abs=1e-6)


def test_bound_of_identical_runs_depends_on_sample_size() -> None:
    few, many = (share_difference(np.zeros(n), np.full(n, 4.0)) for n in (20, 2000))
    assert few is not None
    assert many is not None
    assert few.lower() == pytest.approx(-1.644854 * math.sqrt(2) / 22, abs=1e-5)  # a tenth, not 0
    assert -0.002 < many.lower() < 0
    assert few.non_inferiority_p(0.05) > 0.05 > many.non_inferiority_p(0.05)
    assert share_difference(np.zeros(0), np.zeros(0)) is None


@pytest.mark.parametrize("error", [0.02, 0.01, 0.003])
@given(st.lists(st.integers(-4, 4), min_size=3, max_size=40))
def test_requested_group_count_has_the_stated_error(error: float, sums: list[int]) -> None:
    sizes = np.full(len(sums), 4.0)
    pilot = share_difference(np.array(sums, float) - np.mean(sums), sizes)  # without a difference, as it is planned
    assert pilot is not None
    times = pilot.groups_needed(error) / len(sums)
    many = share_difference(
        np.tile(np.array(sums, float) - np.mean(sums), max(1, round(times))), np.tile(sizes, max(1, round(times)))
    )
    assert many is not None
    if times >= 20:
        assert many.error == pytest.approx(error, rel=0.05)


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
    rejected = outside = 0
    for _ in range(1000):
        right = simulated(random, examples, conditions, [0.0])
        sums = (right[..., 1].astype(int) - right[..., 0]).sum(1)
        rejected += sign_flip_test(sums.tolist()) <= 0.05
        difference = share_difference(sums.astype(float), np.full(examples, float(conditions)))
        assert difference is not None
        low, high = difference.interval()
        outside += not low <= 0 <= high
    assert rejected <= 65  # of 1,000; 5% and two standard errors
    assert outside <= 65
