"""Learning curve: what the same training achieves with different data sets and numbers of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from app.compare.fine_tuning import Change, change_between, conflict_conditions
from app.compare.run_view import RunView, RunViews
from benchmarks.stats.intervals import clustered_wilson
from benchmarks.vocabulary import Cell, Estimate, Table

COLUMNS = ("rows", "under conflict", "gain", "without conflict", "change")


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A training on ``rows`` rows of the data set ``data``, and the run with its adapter.

    Attributes:
        conflict: The accuracy under conflict (on all answers of a benchmark that is all conflicts), with its 95% interval.
        gain: Its difference from the base's, with the paired interval.
        other: The accuracy without conflict; None where the benchmark has no such conditions.
        change: Its difference from the base's.
    """

    data: str
    rows: int
    run: RunView
    conflict: Estimate
    gain: Change
    other: Estimate | None
    change: Change | None


@dataclass(frozen=True)
class LearningCurve:
    """The points of all data sets, by set and size, and the base's accuracies under conflict and without."""

    views: RunViews
    points: tuple[CurvePoint, ...]
    base: Estimate
    base_other: Estimate | None

    @property
    def data(self) -> list[str]:
        """The names of the data sets."""
        return list(dict.fromkeys(point.data for point in self.points))

    def of(self, data: str) -> list[CurvePoint]:
        """Return the points of a data set, by size."""
        return sorted((point for point in self.points if point.data == data), key=lambda point: point.rows)


def learning_curve(views: RunViews, places: Sequence[tuple[str, int]], *, resamples: int) -> LearningCurve:
    """Return the curve of runs: the base's, then one for each data set and number of rows in ``places``."""
    base, *runs = views.runs
    conflicts, without = conflict_conditions(views.benchmark)
    points = []
    for (data, rows), run in zip(places, runs, strict=True):
        change = change_between(views, base, run, without, resamples=resamples) if without else None
        points.append(
            CurvePoint(
                data,
                rows,
                run,
                _accuracy(views, run, conflicts),
                change_between(views, base, run, conflicts, resamples=resamples),
                _accuracy(views, run, without) if without else None,
                change,
            )
        )
    other = _accuracy(views, base, without) if without else None
    return LearningCurve(views, tuple(points), _accuracy(views, base, conflicts), other)


def _accuracy(views: RunViews, run: RunView, conditions: Sequence[str]) -> Estimate:
    """Return a run's accuracy with Wilson's interval; answers with nothing to label are wrong."""
    benchmark, wanted = views.benchmark, frozenset(conditions)
    groups: dict[str, list[float]] = {}
    for answer in run.answers.values():
        if answer.condition in wanted and (answer.outcome in benchmark.labels or answer.outcome == "unparsed"):
            score = 0.0 if answer.outcome == "unparsed" else benchmark.score(answer.condition, answer.outcome)
            groups.setdefault(answer.group, []).append(score)
    return clustered_wilson([float(np.sum(scores)) for scores in groups.values()], list(map(len, groups.values())))


def curve_table(curve: LearningCurve) -> Table:
    """Return a row for the base, and one for each data set and number of rows."""
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        (curve.views.runs[0].label, (0, curve.base, None, curve.base_other, None))
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
            ),
        )
        for data in curve.data
        for point in curve.of(data)
    ]
    notes = (
        "The same training on each data set and number of rows; smaller sets are parts of larger ones. Accuracies with Wilson's "
        "95% interval over examples; an answer with nothing to label is wrong.",
        "gain, change: less the base, with the paired 95% bootstrap interval over examples.",
    )
    return Table("learning-curve", "Data quality against quantity", COLUMNS, tuple(rows), notes)


def curve_sentences(curve: LearningCurve, *, resamples: int) -> list[str]:
    """Return how the data sets differ under conflict: at equal size, and the most rows of one against fewer of another."""
    conflicts, _ = conflict_conditions(curve.views.benchmark)

    def lead(first: CurvePoint, second: CurvePoint) -> str:
        change = change_between(curve.views, second.run, first.run, conflicts, resamples=resamples)
        verdict = "" if change.is_gain() or change.is_loss() else ", not significant"
        return (
            f"{first.data} with {first.rows} rows against {second.data} with {second.rows}: {change.points()}{verdict}."
        )

    sentences = []
    for first, second in combinations(curve.data, 2):
        mine, theirs = curve.of(first), curve.of(second)
        equal = [(a, b) for a in mine for b in theirs if a.rows == b.rows]
        if equal:
            sentences.append(lead(*equal[-1]))
        fewest, most = (mine, theirs) if mine[-1].rows < theirs[-1].rows else (theirs, mine)
        if fewest[-1].rows < most[-1].rows:
            sentences.append(lead(fewest[-1], most[-1]))
    return sentences
