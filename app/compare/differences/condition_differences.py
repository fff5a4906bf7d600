"""Differences of accuracy between two runs under each condition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.compare.runs.run_pairs import NO_LABELS, RunPair, label_codes
from app.compare.runs.run_view import RunViews
from benchmarks.vocabulary import Estimate


@dataclass(frozen=True, slots=True)
class ConditionDifference:
    """The second run's accuracy less the first one's under a condition, over the answers that count in both."""

    condition: str
    difference: Estimate


def accuracy_by_condition(pair: RunPair, views: RunViews) -> tuple[ConditionDifference, ...]:
    """Return the difference under each condition of which the two runs share instances, in the benchmark's order."""
    benchmark, labels = views.benchmark, views.label_metrics.labels
    conditions = benchmark.conditions
    is_correct = np.array([[benchmark.correct(condition, label) for label in labels] for condition in conditions])
    codes = pair.shared_codes(conditions, label_codes(views.label_metrics))
    codes = codes[codes[:, 1] >= 0]
    shared_conditions = set(codes[:, 1].tolist())
    place, condition, first, second = codes[(codes >= 0).all(1)].T
    gained = is_correct[condition, second].astype(float) - is_correct[condition, first]
    differences = {}
    for number in shared_conditions:
        under = condition == number
        share = pair.clusters.at(place[under]).difference(gained[under])
        differences[number] = Estimate(None, reason=NO_LABELS) if share is None else share.estimate
    return tuple(
        ConditionDifference(name, differences[place]) for place, name in enumerate(conditions) if place in differences
    )
