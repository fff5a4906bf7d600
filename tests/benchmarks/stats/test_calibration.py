"""Calibration: definitions against straightforward references and scikit-learn, arithmetic, and coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.stats.calibration import (
    auroc_estimate,
    bin_count,
    bin_numbers,
    brier_estimate,
    calibration_error_estimate,
    mean_estimate,
    reliability,
)
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import student_quantile

Array = NDArray[np.float64]

RANDOM = np.random.default_rng(4)


def answers(
    clusters: int, per_cluster: int = 1, *, boast: float = 1.0, random: np.random.Generator = RANDOM
) -> tuple[Array, Array, Clusters]:
    """Return confidences, rightness and clusters, whose answers are correlated; ``boast`` 1 is calibrated."""
    cluster = np.repeat(np.arange(clusters), per_cluster)
    confidence = random.beta(3, 1.5, len(cluster))
    shared, own = random.random(clusters)[cluster], random.random(len(cluster))
    luck = np.where(random.random(clusters)[cluster] < 0.5, shared, own)
    return confidence, (luck < confidence * boast).astype(float), Clusters.of(cluster)


def alone(values: Array) -> Clusters:
    """Return clusters of one answer each."""
    return Clusters.of(np.arange(len(values)))


def auroc(score: Array, positive: Array) -> float | None:
    return auroc_estimate(score, positive, alone(score)).value


def brier_score(confidence: Array, right: Array) -> float | None:
    return brier_estimate(confidence, right, alone(right), resamples=2, seed=0).value


def calibration_error(confidence: Array, right: Array, bins: int) -> float | None:
    return calibration_error_estimate(confidence, right, alone(right), bins, resamples=0, seed=0)[0].value


def naive_auroc(score: Array, positive: Array) -> float:
    pairs = [(a > b) + (a == b) / 2 for a in score[positive > 0] for b in score[positive <= 0]]
    return float(np.mean(pairs))


def test_auroc_is_the_share_of_ordered_pairs() -> None:
    for _ in range(20):
        score = RANDOM.integers(0, 6, 40) / 5
        positive = RANDOM.integers(0, 2, 40).astype(float)
        assert auroc(score, positive) == pytest.approx(naive_auroc(score, positive))
    assert auroc(np.array([0.1, 0.9]), np.array([0.0, 1.0])) == 1
    assert auroc(np.full(9, 0.5), (np.arange(9) % 2).astype(float)) == 0.5
    assert auroc(np.array([0.1, 0.9]), np.ones(2)) is None


def test_calibration_error_follows_its_definition() -> None:
    confidence, right, _ = answers(500, boast=0.7)
    # All confidences differ, so ten bins of equal mass are ten runs of the sorted answers.
    order = np.argsort(confidence)
    expected = sum(
        len(part) / 500 * abs(right[part].mean() - confidence[part].mean()) for part in np.array_split(order, 10)
    )
    assert calibration_error(confidence, right, 10) == pytest.approx(expected)
    assert brier_score(confidence, right) == pytest.approx(
        sum((c - r) ** 2 for c, r in zip(confidence, right, strict=True)) / 500
    )


def test_values_that_follow_from_arithmetic() -> None:
    coin = np.full(100, 0.5)
    right = np.tile([0.0, 1.0], 50)
    assert calibration_error(coin, right, 10) == 0
    assert brier_score(coin, right) == 0.25
    assert auroc(coin, right) == 0.5
    sure = np.ones(100)
    assert calibration_error(sure, right, 10) == 0.5
    assert brier_score(sure, right) == 0.5
    assert calibration_error(sure, sure, 10) == brier_score(sure, sure) == 0


def test_scikit_learn_agrees() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    curve = pytest.importorskip("sklearn.calibration").calibration_curve
    for _ in range(20):
        confidence, right, clusters = answers(200, 2, boast=0.8)
        tied = np.round(confidence, 1)
        assert auroc(tied, right) == pytest.approx(metrics.roc_auc_score(right, tied))
        assert brier_score(confidence, right) == pytest.approx(metrics.brier_score_loss(right, confidence))
        shares, means = curve(right, confidence, n_bins=10, strategy="quantile")
        ours = reliability(confidence, right, clusters, 10)
        assert [bin_.accuracy.value for bin_ in ours] == pytest.approx(shares.tolist())
        assert [bin_.confidence for bin_ in ours] == pytest.approx(means.tolist())
        expected = sum(n.n / 400 * abs(s - m) for n, s, m in zip(ours, shares, means, strict=True))
        assert calibration_error(confidence, right, 10) == pytest.approx(expected)


def test_equal_confidences_share_a_bin_in_any_order() -> None:
    confidence = np.array([0.2] * 7 + [0.9] * 33)
    numbers = bin_numbers(confidence, 4)
    assert len(set(numbers[:7])) == len(set(numbers[7:])) == 1
    right = RANDOM.integers(0, 2, 40).astype(float)
    order = RANDOM.permutation(40)
    assert calibration_error(confidence, right, 4) == pytest.approx(
        calibration_error(confidence[order], right[order], 4)
    )
    curve = reliability(confidence, right, Clusters.of(np.arange(40)), 4)
    assert [bin_.confidence for bin_ in curve] == pytest.approx([0.2, 0.9])
    assert [bin_.n for bin_ in curve] == [7, 33]
    assert [bin_count(n) for n in (5, 30, 99, 5000)] == [1, 3, 9, 10]


def test_intervals_without_variance_or_answers() -> None:
    none: Array = np.array([])
    assert mean_estimate(none, Clusters.of(none.astype(np.int64)), resamples=10, seed=0).value is None
    sure, clusters = np.ones(40), Clusters.of(np.arange(40))
    error, by_chance = calibration_error_estimate(sure, sure, clusters, 4, resamples=50, seed=0)
    assert (error.value, error.low, error.high, by_chance) == (0, 0, 0, 0)
    assert auroc_estimate(sure, sure, clusters).value is None
    apart = auroc_estimate(np.arange(40.0), (np.arange(40) >= 20).astype(float), clusters)
    assert (apart.value, apart.high) == (1, 1)
    t = student_quantile(0.975, 39)
    rarer = student_quantile(0.975, 19)
    assert apart.low == pytest.approx(20 / (20 + rarer * rarer)), "an interval of no width would promise too much"
    brier = brier_estimate(sure, sure, clusters, resamples=50, seed=0)
    assert (brier.value, brier.low) == (0, 0)
    assert brier.high == pytest.approx(t * t / (40 + t * t))


def test_one_cluster_has_no_intervals() -> None:
    confidence, right = np.linspace(0.1, 0.9, 40), np.tile([0.0, 1.0], 20)
    clusters = Clusters.of(np.zeros(40, dtype=np.int64))
    for interval in (
        brier_estimate(confidence, right, clusters, resamples=50, seed=0),
        calibration_error_estimate(confidence, right, clusters, 1, resamples=50, seed=0)[0],
        auroc_estimate(confidence, right, clusters),
        *(bin_.accuracy for bin_ in reliability(confidence, right, clusters, 2)),
    ):
        assert interval.value is not None
        assert (interval.low, interval.high) == (None, None)


@pytest.mark.slow
@pytest.mark.parametrize("per_cluster", [1, 4])
def test_intervals_cover_the_truth(per_cluster: int) -> None:
    random = np.random.default_rng(7)
    population = random.beta(3, 1.5, 400_000)
    trials, count = 300, 120
    for boast in (1.0, 0.8):
        gaps = population * (boast - 1)
        true_error = np.abs(np.bincount(bin_numbers(population, 6), gaps, 6)).sum() / len(population)
        true_brier = float(
            ((1 - population) ** 2 * population * boast + population**2 * (1 - population * boast)).mean()
        )
        hits = np.zeros(2)
        for trial in range(trials):
            confidence, right, clusters = answers(count, per_cluster, boast=boast, random=random)
            error, _ = calibration_error_estimate(confidence, right, clusters, 6, resamples=400, seed=trial)
            brier = brier_estimate(confidence, right, clusters, resamples=400, seed=trial)
            for i, (interval, truth) in enumerate(((error, true_error), (brier, true_brier))):
                assert interval.low is not None
                assert interval.high is not None
                hits[i] += interval.low <= truth <= interval.high
        assert (hits / trials > 0.9).all(), (boast, hits / trials)


@pytest.mark.parametrize(("per_cluster", "shift"), [(1, 1.0), (4, 0.0), (4, 1.0), (4, 2.5)])
def test_auroc_interval_covers_the_truth(per_cluster: int, shift: float) -> None:
    from statistics import NormalDist

    random = np.random.default_rng(8)
    truth, trials, count, hits = NormalDist().cdf(shift / math.sqrt(2)), 400, 80, 0
    for _ in range(trials):
        cluster = np.repeat(np.arange(count), per_cluster)
        # Where a cluster has several answers, they are of both classes.
        positive = (np.arange(len(cluster)) % 2 if per_cluster > 1 else random.random(count) < 0.4).astype(float)
        score = random.normal(size=count)[cluster] * 0.7 + random.normal(size=len(cluster)) * 0.714 + shift * positive
        interval = auroc_estimate(score, positive, Clusters.of(cluster))
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= truth <= interval.high
    assert 0.92 <= hits / trials <= 0.99
