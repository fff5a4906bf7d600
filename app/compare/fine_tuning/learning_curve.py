"""Learning curve: what the same training achieves with different data sets and numbers of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from app.compare.decision.trust_metric import rule_of_rows
from app.compare.fine_tuning.change_by_training import Change, Measure, answer_scores
from app.compare.fine_tuning.fine_tuning_effect import conflict_conditions, fine_tuning, gain_part
from app.compare.fine_tuning.fine_tuning_verdict import Verdict, verdict
from app.compare.runs.run_pairs import run_metrics
from app.compare.runs.run_view import RunView, RunViews, label_metrics_of
from app.text.plural import count_of
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.stats.intervals import INTERVALS
from benchmarks.vocabulary import Cell, Estimate, Table

COLUMNS = ("rows", "under conflict", "gain", "without conflict", "change", "verdict")


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A training on ``rows`` rows of the data set ``data``, and the run with its adapter.

    Attributes:
        conflict: The accuracy under conflict (on all answers of a benchmark that is all conflicts), or the metric that was
            named, with its 95% interval.
        gain: Its difference from the base's, with the paired interval.
        other: The accuracy without conflict; None where the benchmark has no such conditions.
        change: Its difference from the base's.
        verdict: The verdict on the adapter.
    """

    data: str
    rows: int
    run: RunView
    conflict: Estimate
    gain: Change
    other: Estimate | None
    change: Change | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class FailedPoint:
    """A training on ``rows`` rows of the data set ``data`` that gave no adapter, and why."""

    data: str
    rows: int
    reason: str


@dataclass(frozen=True)
class LearningCurve:
    """The points of all data sets, by set and size, and the base's accuracies under conflict and without."""

    views: RunViews
    points: tuple[CurvePoint, ...]
    base: Estimate
    base_other: Estimate | None
    metric: str = ""
    """The metric in the place of the accuracy under conflict, if one was named."""
    failed: tuple[FailedPoint, ...] = ()

    @property
    def data(self) -> list[str]:
        """The names of the data sets that have a point."""
        return list(dict.fromkeys(point.data for point in self.points))

    def of(self, data: str) -> list[CurvePoint]:
        """Return the points of a data set, by size."""
        return sorted((point for point in self.points if point.data == data), key=lambda point: point.rows)

    @property
    def measured(self) -> str:
        """The purpose of the training, in words."""
        return self.metric or gain_part(rule_of_rows(self.views), conflict_conditions(self.views.benchmark)[1])

    def lead(self, first: RunView, second: RunView, *, resamples: int) -> Change:
        """Return the second run's lead over the first in what training is for."""
        measure = Measure.of(self.views, first, second, resamples)
        if self.metric:
            return measure.metric_change(self.metric)
        return measure.change(self.measured, conflict_conditions(self.views.benchmark)[0])


def learning_curve(
    views: RunViews,
    places: Sequence[tuple[str, int]],
    *,
    metric: str = "",
    resamples: int,
    failed: Sequence[FailedPoint] = (),
) -> LearningCurve:
    """Return the curve of runs: the base's, then one for each data set and number of rows in ``places``.

    ``failed`` are the points without a run. ``metric`` takes the place of the accuracy under conflict. Raises SpecError if the
    benchmark has none of that name.
    """
    base, *runs = views.runs
    metric = find_metric(views.benchmark, metric)

    def value(run: RunView) -> Estimate:
        if not metric:
            return _accuracy(views, run, conflicts)
        return run_metrics(run, views.label_metrics, [metric], resamples=resamples, seed=views.seed)[0]

    empty = LearningCurve(views, (), Estimate(None), None, metric)
    conflicts, without = conflict_conditions(views.benchmark)
    points = []
    for (data, rows), run in zip(places, runs, strict=True):
        tuning = fine_tuning(views, base, run, metric=metric or None, resamples=resamples)
        points.append(
            CurvePoint(
                data,
                rows,
                run,
                value(run),
                tuning.gain,
                _accuracy(views, run, without) if without else None,
                next(iter(tuning.losses), None),
                verdict(tuning),
            )
        )
    other = _accuracy(views, base, without) if without else None
    return replace(empty, points=tuple(points), base=value(base), base_other=other, failed=tuple(failed))


def find_metric(benchmark: Benchmark, metric: str) -> str:
    """Return the benchmark's metric called ``metric``, in any case; empty for empty. Raises SpecError if there is none."""
    known = {name.casefold(): name for name in label_metrics_of(benchmark).of}
    if metric and metric.casefold() not in known:
        raise SpecError(f"{benchmark.name} has no metric {metric!r}; {did_you_mean(metric, known.values())}")
    return known.get(metric.casefold(), "")


def _accuracy(views: RunViews, run: RunView, conditions: Sequence[str]) -> Estimate:
    """Return a run's accuracy with Wilson's interval, as a decision counts its answers."""
    scores = answer_scores(run.coded, views, conditions)
    decided = np.flatnonzero(scores[:, 0] == scores[:, 1])
    return run.coded.clusters.at(decided).mean(scores[decided, 0])


def curve_table(curve: LearningCurve) -> Table:
    """Return a row for the base, and one for each data set and number of rows."""
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        (curve.views.runs[0].label, (0, curve.base, None, curve.base_other, None, None))
    ]
    rows += [
        (
            f"{point.data} / {point.rows}",
            (
                point.rows,
                point.conflict,
                point.gain.difference,
                point.other,
                point.change.difference if point.change else None,
                point.verdict.category,
            ),
        )
        for data in curve.data
        for point in curve.of(data)
    ]
    rows += [(f"{point.data} / {point.rows}", (point.rows, "failed", None, None, None, None)) for point in curve.failed]
    notes = (
        "The same training on each data set and number of rows; smaller sets are parts of larger ones. An answer with nothing to "
        "label is wrong. gain, change: less the base, paired.",
        INTERVALS,
        *(f"{point.data} / {point.rows}: {point.reason}" for point in curve.failed),
    )
    columns = (COLUMNS[0], curve.measured, *COLUMNS[2:])
    return Table("learning-curve", "Data quality against quantity", columns, tuple(rows), notes)


def curve_sentences(curve: LearningCurve, *, resamples: int) -> list[str]:
    """Return the verdict on the most rows of each data set, and how the sets differ: at equal size, and all of each."""

    def lead(first: CurvePoint, second: CurvePoint) -> str:
        change = curve.lead(second.run, first.run, resamples=resamples)
        significance = "" if change.is_gain() or change.is_loss() else ", not significant"
        return (
            f"{first.data} with {count_of(first.rows, 'row')} against {second.data} with {second.rows}: "
            f"{_lost_without_conflict(curve, second, first, resamples)}{change.points()} {curve.measured}{significance}."
        )

    largest = [curve.of(data)[-1] for data in curve.data]
    sentences = [
        f"{x.verdict.category.capitalize()} with {count_of(x.rows, 'row')} of {x.data}: {' '.join(x.verdict.sentences)}"
        for x in largest
    ]
    for first, second in combinations(curve.data, 2):
        mine, theirs = curve.of(first), curve.of(second)
        equal = [(a, b) for a in mine for b in theirs if a.rows == b.rows]
        if equal:
            sentences.append(lead(*equal[-1]))
        fewest, most = (mine, theirs) if mine[-1].rows < theirs[-1].rows else (theirs, mine)
        if fewest[-1].rows < most[-1].rows:
            sentences.append(lead(fewest[-1], most[-1]))
    return sentences


def _lost_without_conflict(curve: LearningCurve, before: CurvePoint, after: CurvePoint, resamples: int) -> str:
    """Return, with a comma, what the second point is shown to lose against the first without conflict; "" where nothing."""
    without = conflict_conditions(curve.views.benchmark)[1]
    if not without:
        return ""
    change = Measure.of(curve.views, before.run, after.run, resamples).change("", without)
    return f"{change.points()} without conflict, " if change.is_loss() else ""
