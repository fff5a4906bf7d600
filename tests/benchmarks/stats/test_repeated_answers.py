"""Answers that repeat instances: what they are worth, and the intervals that this gives."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import Draws
from benchmarks.stats.repeated_answers import RepeatedClusters, agreeing_pairs, metric_estimate

REPEATS = 4


def repeated(values: np.ndarray) -> tuple[RepeatedClusters, np.ndarray]:
    """Answers of shape (instances, repeats), each instance a cluster."""
    instance = np.repeat(np.arange(len(values)), values.shape[1])
    plain = Clusters.of(instance)
    return RepeatedClusters(plain.own, plain.shown, instance), values.ravel()


def test_equal_answers_to_an_instance_are_worth_one() -> None:
    once = np.array([1, 0, 1, 1, 0, 1, 1, 1])
    clusters, values = repeated(np.repeat(once[:, None], REPEATS, 1))
    assert clusters.distinct(values) == pytest.approx(1 / REPEATS)
    single = Clusters.of(np.arange(len(once))).mean(once)
    share = clusters.mean(values)
    assert (share.value, share.low, share.high) == pytest.approx((single.value, single.low, single.high))
    assert share.n == REPEATS * len(once)
    lead = once - once[::-1]
    difference = clusters.difference(np.repeat(lead, REPEATS))
    alone = Clusters.of(np.arange(len(once))).difference(lead)
    assert difference is not None
    assert alone is not None
    assert difference.interval() == pytest.approx(alone.interval())
    assert difference.pairs == REPEATS * len(once)


def test_answers_without_a_spread_are_worth_one_as_well() -> None:
    clusters, values = repeated(np.ones((5, REPEATS), dtype=int))
    assert clusters.distinct(values) == pytest.approx(1 / REPEATS)


def test_answers_by_chance_are_worth_all_and_others_something_between() -> None:
    random = np.random.default_rng(0)
    chance, values = repeated(random.integers(0, 2, (2000, REPEATS)))
    assert chance.distinct(values) == pytest.approx(1, abs=0.06)
    # Of two equally likely values, half of the instances always give one: any two answers agree in 3 of 4 pairs.
    mixed = random.integers(0, 2, (2000, REPEATS))
    mixed[:1000] = mixed[:1000, :1]
    some, values = repeated(mixed)
    assert some.distinct(values) == pytest.approx(1 / (1 + (REPEATS - 1) / 2), abs=0.03)


def test_pairs_are_counted_within_instances() -> None:
    counts = agreeing_pairs(np.array([7, 7, 7, 9, 9, 4]), np.array([1, 1, 2, 2, 2, 1]))
    assert [each.tolist() for each in counts] == [[0, 1, 1], [0, 3, 1], [1, 3, 2]]
    assert [each.tolist() for each in agreeing_pairs(np.zeros(0, int), np.zeros(0))] == [[], [], []]


@pytest.mark.parametrize("spread", [0.5, 4.0], ids=["the same for every instance", "most instances always or never"])
def test_intervals_hold_the_truth(spread: float) -> None:
    """Instances are right with probabilities of a beta distribution with mean 0.7; 40 of them are asked several times."""
    random, covered, studies = np.random.default_rng(1), 0, 1500
    for _ in range(studies):
        chances = random.beta(0.7 * 2 / spread**2, 0.3 * 2 / spread**2, 40)
        clusters, values = repeated((random.random((40, REPEATS)) < chances[:, None]).astype(int))
        share = clusters.mean(values)
        assert share.low is not None
        assert share.high is not None
        covered += share.low <= 0.7 <= share.high
    assert 0.935 < covered / studies < 0.99


def test_a_part_keeps_its_instances() -> None:
    clusters, values = repeated(np.array([[1, 1], [0, 1], [0, 0]]))
    part = clusters.at(values == 1)
    assert isinstance(part, RepeatedClusters)
    assert part.instance.tolist() == [0, 0, 1]


def test_few_equal_answers_of_many_repeats_have_an_interval() -> None:
    counts = np.array([[1.0, 0.0], [1.0, 0.0]])

    def no_draws() -> Draws:
        raise AssertionError("a share needs none")

    share = metric_estimate(lambda cells: cells[..., 0] / cells.sum(-1), counts, 2, no_draws, clusters=2, distinct=0.1)
    assert (share.value, share.n, share.high) == (1.0, 2, 1.0)
    assert share.low is not None
