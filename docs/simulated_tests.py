"""Agreement and utility, corrections by people, and tests, of simulated studies."""

from __future__ import annotations

import numpy as np

from benchmarks.stats.intervals import DIFFERENCE, SHARE, Draws, estimate, influence, kappa_estimate, ratio
from benchmarks.stats.paired_tests import difference_p, paired_p, share_difference
from benchmarks.tables.abstention_quality import Costs, utility_estimate
from benchmarks.vocabulary import LabelMetrics
from docs.simulated_clusters import SLACK, Array, Study, covers
from docs.simulated_estimates import CORRECTED_RESAMPLES, RESAMPLES, Results, is_first, two_ratios
from judges.judge_agreement import gwet_ac1, raw_agreement
from judges.prediction_powered import NOT_SEEN, correct, correction_sums


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
        totals, draws = counts.sum(0), Draws.of(counts, RESAMPLES[SHARE], seed)
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
        yield covers(utility_estimate(of, _COSTS, RESAMPLES[None], seed), truth)


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
        right = correct(sums, _RIGHT, resamples=CORRECTED_RESAMPLES, seed=seed)["right"]
        values = right.corrected, right.people, right.judge
        yield tuple(covers(value, of) for value, of in zip(values, truths, strict=True))


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
    for counts, seed in zip(two_ratios(study, share, share, (first_counts, second_counts)), study.seeds, strict=True):
        values, moved = is_first(counts.sum(0)), influence(is_first, counts)
        replicates = Draws.of(counts, RESAMPLES[DIFFERENCE], seed).replicates(is_first)
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
        yield float(difference.lower(0.95) > gain - loss + SLACK)
