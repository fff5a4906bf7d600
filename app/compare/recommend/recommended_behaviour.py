"""The behaviour of the recommended runs against that of the best run, in sentences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.compare.decision.target_metric import TargetMetric
from app.compare.decision.target_shares import ALPHA, TargetShares, UndecidedAnswers
from app.compare.recommend.recommended_runs import Decision
from app.text.percentage_points import format_points
from benchmarks.stats.intervals import span

_MOST_BEHAVIOURS = 3


def behaviour(decision: Decision) -> list[str]:
    """Return how the recommended runs behave against the best; where that is the only one, how the others do."""
    best = decision.basis.best
    recommended_runs = (decision.least_memory, decision.smallest_on_disk, decision.fastest)
    recommended = {run for run in recommended_runs if run is not None and run != best}
    others = recommended or {run for run in range(len(decision.basis.views.runs)) if run != best}
    return [line for run in sorted(others) for line in _behaviour_of(decision.basis, run)]


def _behaviour_of(shares: TargetShares, index: int) -> list[str]:
    """Return what the run does significantly more or less often than the best, by condition; else the largest difference."""
    metrics, runs, best = shares.views.label_metrics, shares.views.runs, shares.best
    conflicts = [i for i, name in enumerate(metrics.conditions) if name in shares.views.benchmark.conflicts]
    cells = [
        (i, label, answers)
        for i in conflicts or range(len(metrics.conditions))
        if (answers := _under_condition(shares, i)) is not None
        for label in range(len(metrics.labels))
        if (answers.label[:, [index, best]] == label).any()
    ]
    lines = []
    for condition, label, answers in cells:
        marked = np.zeros((len(metrics.conditions), len(metrics.labels)), dtype=bool)
        marked[condition, label] = True
        metric = TargetMetric(metrics.labels[label], marked)
        marks = replace(answers, metric=metric, every=answers.every and replace(answers.every, metric=metric))
        low, high = marks.interval(index, best, 1 - ALPHA / len(cells))
        difference = marks.difference(index, best).value
        line = f"{_behaviour_sentence(answers, (index, best), condition, label)} ({format_points(difference, sign=True)} points; "
        line += f"{span(format_points(low, sign=True), format_points(high, sign=True))}{_level(len(cells))})."
        lines.append((low <= 0 <= high, -abs(difference), condition, line))
    lines.sort()
    by_condition: dict[int, str] = {}
    for insignificant, _, condition, line in lines:
        if not insignificant:
            by_condition.setdefault(condition, line)
    if by_condition:
        return list(by_condition.values())[:_MOST_BEHAVIOURS]
    where = "Under conflict " if conflicts else ""
    if not lines or not lines[0][1]:
        return [f"{where}{runs[index].label} gives every label as often as {runs[best].label}."]
    return [
        f"{where}{runs[index].label} does not behave significantly differently from {runs[best].label}.",
        f"The largest difference: {lines[0][-1]}",
    ]


def _behaviour_sentence(shares: TargetShares, runs: tuple[int, int], condition: int, label: int) -> str:
    benchmark, metrics = shares.views.benchmark, shares.views.label_metrics
    first, second = (shares.views.runs[run].label for run in runs)
    label_name, condition_name = metrics.labels[label], metrics.conditions[condition]
    behaviour = benchmark.behaviours.get(label_name, f"is labelled {label_name}")
    situation = benchmark.situations.get(condition_name, f"under {condition_name}")
    situation = situation[:1].upper() + situation[1:]
    first_share, second_share = ((shares.label[:, run] == label).mean() for run in runs)
    return (
        f"{situation}, {first} {behaviour} in {first_share:.0%} of {len(shares.group)} answers, {second} in "
        f"{second_share:.0%}"
    )


def _level(intervals: int) -> str:
    """Return the confidence level in words, where ``intervals`` hold simultaneously (Bonferroni)."""
    return " at 95%" if intervals == 1 else f" at 95%, simultaneous over {intervals} intervals"


def _under_condition(shares: TargetShares, condition: int) -> TargetShares | None:
    """Return the answers under one condition; None where there are none."""
    selected = shares.condition == condition
    if not selected.any():
        return None
    metric, every = replace(shares.metric, mix=None), shares.every
    if every is not None and (mask := every.condition == condition).any():
        every = UndecidedAnswers(
            metric, every.clusters.at(mask), every.condition[mask], every.label[mask], every.text[mask]
        )
    return TargetShares(
        shares.views,
        metric,
        shares.group[selected],
        shares.clusters.at(selected),
        shares.condition[selected],
        shares.label[selected],
        every,
    )
