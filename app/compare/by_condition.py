"""Differences of accuracy between two runs under each condition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.compare.pairs import NO_LABELS, RunPair, label_codes
from app.compare.run_view import RunViews
from benchmarks.answers import number_groups
from benchmarks.stats.intervals import estimate, ratio, resample
from benchmarks.vocabulary import Estimate


@dataclass(frozen=True, slots=True)
class ConditionDifference:
    """The second run's accuracy less the first one's under a condition, over the answers that count in both."""

    condition: str
    difference: Estimate


def accuracy_by_condition(pair: RunPair, views: RunViews) -> tuple[ConditionDifference, ...]:
    """Return the difference under each condition of which the two runs share instances, in the benchmark's order.

    Intervals are 95% percentile bootstrap intervals over examples, both runs' answers to an example together.
    """
    benchmark, labels = views.benchmark, views.label_metrics.labels
    conditions = benchmark.conditions
    is_correct = np.array([[benchmark.correct(condition, label) for label in labels] for condition in conditions])
    codes = pair.shared_codes(conditions, label_codes(views.label_metrics))
    codes = codes[codes[:, 1] >= 0]
    shared_conditions = set(codes[:, 1].tolist())
    group, condition, first, second = codes[(codes >= 0).all(1)].T
    count, groups = number_groups(group)
    # The difference of right answers and the number of answers, by example and condition.
    lead, answers = np.zeros((2, count, len(conditions)))
    gained = is_correct[condition, second].astype(float) - is_correct[condition, first]
    np.add.at(lead, (groups, condition), gained)
    np.add.at(answers, (groups, condition), 1)
    sums = np.stack([lead, answers], axis=1)
    totals, draws = sums.sum(0), resample(sums, pair.resamples, pair.seed)
    values = ratio(totals[0], totals[1])
    replicates = ratio(draws[:, 0], draws[:, 1])
    return tuple(
        ConditionDifference(
            name,
            estimate(float(values[place]), replicates[:, place], int(totals[1, place]), reason=NO_LABELS),
        )
        for place, name in enumerate(conditions)
        if place in shared_conditions
    )
