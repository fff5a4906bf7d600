"""Before and after fine-tuning: gains under conflict, losses without it and on other benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.compare.bounds import difference_bounds, undecided_of
from app.compare.decided import decided_outcome, score_bounds
from app.compare.non_inferiority import format_points
from app.compare.pairs import RunPair, empty_label, run_metrics
from app.compare.published import comparable_rows, normalised_name
from app.compare.run_view import RunView, RunViews
from app.report.fine_tuned import ADAPTER, WEIGHTS, base_places
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import INTERVALS, span
from benchmarks.stats.paired_tests import Difference, holm, paired_p
from benchmarks.vocabulary import Cell, Estimate, Table

COLUMNS = ("before", "after", "difference", "n", "score fell", "score rose", "p", "p (Holm)")
_SCALE = 30
"""A multiple of the denominators of the scores 0.3, 0.6, 1/3 and 1, so that tests work with whole numbers."""


@dataclass(frozen=True, slots=True)
class Change:
    """The accuracy on one part of the answers, before and after.

    Attributes:
        part: The part, as in "loses 2 points PART": "under conflict", "without conflict", "on POPE".
        before: The base's accuracy.
        after: The fine-tuned model's accuracy.
        difference: The difference with its paired 95% interval.
        lost, gained: The numbers of answers whose score fell and rose.
        p: Its two-sided p; see :func:`paired_p`.
        bounds: The difference of shares at its least and its greatest, whatever the undecided answers turn out to be; None
            where it is no difference of shares.
    """

    part: str
    before: Estimate
    after: Estimate
    difference: Estimate
    lost: int
    gained: int
    p: float | None
    bounds: tuple[Difference, Difference] | None

    def exceeds(self, limit: float) -> bool:
        """Return whether the difference is shown to be above ``limit``, by its one-sided 95% bound."""
        low = self.difference.low if self.bounds is None else self.bounds[0].lower()
        return low is not None and low > limit

    def is_loss(self) -> bool:
        """Return whether a loss is shown, by the two-sided 95% interval."""
        return (interval := self.interval()) is not None and interval[1] < 0

    def is_gain(self) -> bool:
        """Return whether a gain is shown, by the two-sided 95% interval."""
        return (interval := self.interval()) is not None and interval[0] > 0

    def interval(self) -> tuple[float, float] | None:
        """Return the interval that decides; None if there is none."""
        if self.bounds is not None:
            return self.bounds[0].interval()[0], self.bounds[1].interval()[1]
        low, high = self.difference.low, self.difference.high
        return None if low is None or high is None else (low, high)

    def points(self) -> str:
        """Return the difference with the interval that decides, in percentage points."""
        if self.difference.value is None:
            return "nothing, as no answer of both runs counts"
        value = f"{format_points(self.difference.value, sign=True)} points"
        if (interval := self.interval()) is None:
            return value
        low, high = (format_points(x, sign=True) for x in interval)
        return f"{value} ({span(low, high)} at 95%)"


@dataclass(frozen=True, slots=True)
class FineTuning:
    """A base's run and its fine-tuned model's run, with what changed.

    Attributes:
        base: The run before.
        tuned: The run after.
        gain: The change that training is for: the accuracy under conflict (on all answers of a benchmark that is all
            conflicts), or the metric that was named.
        detection: The change of the rate at which conflicts are named, if the benchmark measures it apart from accuracy.
        losses: The changes elsewhere, which must stay within the margin. One without a counted answer tells nothing.
        details: The changes under the conditions that make up the losses, if these are several.
        trained: The examples that the fine-tuned model was trained on, a phrase for each benchmark with some.
    """

    base: RunView
    tuned: RunView
    gain: Change
    detection: Change | None
    losses: tuple[Change, ...]
    details: tuple[Change, ...]
    trained: tuple[str, ...] = ()


def tuned_pairs(runs: Sequence[RunView]) -> list[tuple[RunView, RunView]]:
    """Return each run with an adapter, or of a model that one was fused into, after the run of its base.

    Both have the same prompt set. A run without its base is left out.
    """
    bases = base_places([run.identity for run in runs])
    return [(runs[base], tuned) for tuned, base in zip(runs, bases, strict=True) if base is not None]


def fine_tunings(
    views: RunViews, others: Sequence[RunViews] = (), *, metric: str | None = None, resamples: int
) -> list[FineTuning]:
    """Return what changed for each pair of :func:`tuned_pairs` in ``views``; ``others`` are runs of other benchmarks.

    ``metric`` is what training is for, a metric of the benchmark; None is the accuracy under conflict.
    """
    changes = []
    for base, tuned in tuned_pairs(views.runs):
        conflicts, without = conflict_conditions(views.benchmark)
        measure = _Measure(views.benchmark, base, tuned, resamples, views.seed)
        gain = measure.change("under conflict" if without else "on all answers", conflicts)
        detection = measure.metric_change(views, views.benchmark.detection) if views.benchmark.detection else None
        if metric is not None:
            gain, detection = measure.metric_change(views, metric), None
        losses, details = measure.losses("without conflict", "", without)
        trained = _trained(tuned, "")
        for other in others:
            for before, after in _same_models(base, tuned, other.runs):
                title = other.benchmark.title.partition(":")[0]
                rest = _Measure(other.benchmark, before, after, resamples, other.seed)
                more, conditions = rest.losses(f"on {title}", f"on {title}, ", other.benchmark.conditions)
                losses, details = losses + more, details + conditions
                trained += _trained(after, f" of {title}")
        changes.append(FineTuning(base, tuned, gain, detection, losses, details, trained))
    return changes


def _trained(run: RunView, what: str) -> tuple[str, ...]:
    counts = run.trained
    return (f"{counts.examples:,} of the {counts.of:,} examples{what}",) if counts.examples else ()


def conflict_conditions(benchmark: Benchmark) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a benchmark's conditions with a conflict and those without; where it does not tell them apart, all and none."""
    conditions = benchmark.full_conditions
    if not benchmark.conflicts:
        return conditions, ()
    without = benchmark.without_conflict or tuple(c for c in conditions if c not in benchmark.conflicts)
    return tuple(c for c in conditions if c not in without), without


def change_between(
    views: RunViews, before: RunView, after: RunView, conditions: Sequence[str], *, resamples: int
) -> Change:
    """Return the change of accuracy from one run to another under ``conditions``."""
    return _Measure(views.benchmark, before, after, resamples, views.seed).change("", conditions)


def metric_change(views: RunViews, before: RunView, after: RunView, metric: str, *, resamples: int) -> Change:
    """Return the change of a metric of the benchmark from one run to another."""
    return _Measure(views.benchmark, before, after, resamples, views.seed).metric_change(views, metric)


def check_pairs(views: RunViews) -> None:
    """Raise SpecError unless the runs of a further benchmark are a base and what was fine-tuned from it."""
    if not tuned_pairs(views.runs):
        names = ", ".join(run.label for run in views.runs)
        raise SpecError(
            f"these runs are of several benchmarks (of {views.benchmark.name}: {names}); compare runs of one, or on each a "
            "base's and its fine-tuned model's."
        )


def _same_models(base: RunView, tuned: RunView, runs: Sequence[RunView]) -> list[tuple[RunView, RunView]]:
    """Return the pairs of ``runs`` with the adapter of ``tuned`` on the weights of ``base``."""
    return [
        (before, after)
        for before, after in tuned_pairs(runs)
        if after.identity.get(ADAPTER) == tuned.identity.get(ADAPTER)
        and before.identity.get(WEIGHTS) == base.identity.get(WEIGHTS)
    ]


@dataclass(frozen=True, slots=True)
class _Measure:
    """The accuracies of two runs of a benchmark on the instances that both have answered."""

    benchmark: Benchmark
    base: RunView
    tuned: RunView
    resamples: int
    seed: int

    def change(self, part: str, conditions: Sequence[str]) -> Change:
        """Return the change under ``conditions``."""
        of_outcomes = {condition: score_bounds(self.benchmark, condition) for condition in conditions}
        base = self.base.coded
        rows = [
            (place, *scores[decided_outcome(answer)], *scores[decided_outcome(other)])
            for place, (instance, answer) in enumerate(base.items())
            if (scores := of_outcomes.get(answer.condition)) is not None
            and (other := self.tuned.answers.get(instance)) is not None
            and decided_outcome(answer) in scores
            and decided_outcome(other) in scores
        ]
        bounds = self._bounds(rows)
        rows = [row for row in rows if row[1] == row[2] and row[3] == row[4]]
        before, after = (np.array([row[i] for row in rows], dtype=float) for i in (1, 3))
        difference, n = self._difference(rows, after - before), len(rows)
        reason = "nothing was answered in both runs"
        first, second = (
            Estimate(float(x.mean()), n=n) if n else Estimate(None, reason=reason) for x in (before, after)
        )
        return Change(
            part,
            first,
            second,
            Estimate(None, reason=reason) if difference is None else difference.estimate,
            int((after < before).sum()),
            int((after > before).sum()),
            None
            if difference is None
            else paired_p(self._clusters(rows).sums(np.rint(_SCALE * (after - before))), difference),
            bounds if n else None,
        )

    def _clusters(self, rows: Sequence[tuple[Any, ...]]) -> Clusters:
        """Return the clusters of answers, the first item of whose rows is their place in the base."""
        return self.base.coded.clusters.at(np.array([row[0] for row in rows], dtype=np.int64))

    def _difference(self, rows: Sequence[tuple[Any, ...]], values: Any) -> Difference | None:
        """Return the mean of the answers' ``values`` as a difference of shares; None where there are none."""
        if not rows:
            return None
        return self._clusters(rows).difference(values)

    def _bounds(self, rows: Sequence[tuple[Any, ...]]) -> tuple[Difference, Difference] | None:
        """Return the difference of the scores in ``rows`` at its least and at its greatest; None where there are none."""
        ends = [np.array([row[3] - row[2] for row in rows]), np.array([row[4] - row[1] for row in rows])]
        least, greatest = (self._difference(rows, end) for end in ends)
        return None if least is None or greatest is None else (least, greatest)

    def losses(
        self, part: str, prefix: str, conditions: Sequence[str]
    ) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
        """Return the change under ``conditions`` together, called ``part``, and under each of them if there are several.

        Conditions under which the runs share no instance are left out; those under which no answer of both counts are not.
        """
        shared = {answer.condition for name, answer in self.base.answers.items() if name in self.tuned.answers}
        asked = [condition for condition in conditions if condition in shared]
        together = (self.change(part, asked),) if asked else ()
        alone = tuple(self.change(f"{prefix}under {condition}", (condition,)) for condition in asked)
        return together, alone if len(asked) > 1 else ()

    def metric_change(self, views: RunViews, metric: str) -> Change:
        """Return the change of a metric of the benchmark, over the answers that count in both runs."""
        metrics = views.label_metrics
        pair = RunPair(self.base, self.tuned, metrics, self.resamples, self.seed)
        paired = pair.compare(metrics.of[metric])
        before, after = (Estimate(x.value, n=x.n, reason=x.reason) for x in (paired.first, paired.second))
        undecided = undecided_of(pair)
        ends = (paired, paired) if undecided is None else difference_bounds(pair, metrics.of[metric], undecided)
        shares = [end.share for end in ends if end.share is not None]
        bounds = (shares[0], shares[1]) if len(shares) == 2 else None
        lost, gained = paired.lost or 0, paired.gained or 0
        return Change(f"in {metric}", before, after, paired.difference, lost, gained, paired.p, bounds)


def fine_tuning_table(tunings: Sequence[FineTuning]) -> Table:
    """Return a table with a row for each fine-tuned run and part of the answers."""
    changes = [
        (f"{tuning.tuned.label} / {change.part}", change)
        for tuning in tunings
        for change in (tuning.gain, *filter(None, [tuning.detection]), *tuning.losses, *tuning.details)
    ]
    corrected = holm([change.p for _, change in changes])
    rows = tuple((label, _cells(change, p)) for (label, change), p in zip(changes, corrected, strict=True))
    bases = list(dict.fromkeys(tuning.base.label for tuning in tunings))
    notes = (
        f"before: {', '.join(bases)}. Over the n answers that both runs have; an answer with nothing to label counts as wrong, "
        "so that training gains nothing by answers that cannot be read.",
        "score fell, score rose: numbers of answers. p: the larger of that of the interval and that of the sign-flip test over "
        "clusters; p (Holm): corrected for the number of tests of this table (Holm 1979).",
        INTERVALS,
    )
    return Table("fine-tuning", "Before and after fine-tuning", COLUMNS, rows, notes)


def _cells(change: Change, corrected: float | None) -> tuple[Cell, ...]:
    p_values = tuple(Estimate(p, n=change.difference.n, reason=change.difference.reason) for p in (change.p, corrected))
    difference = change.difference
    return (change.before, change.after, difference, difference.n, change.lost, change.gained, *p_values)


def regressions_table(tunings: Sequence[FineTuning], others: Sequence[RunViews], resamples: int) -> Table | None:
    """Return other benchmarks' metrics before and after, in the form of CLASH's Tables 14 and 15, with the paper's rows.

    None where no run of another benchmark belongs to ``tunings``.
    """
    columns: list[str] = []
    rows: dict[str, dict[str, Cell]] = {}
    paper_rows: dict[str, dict[str, Cell]] = {}
    for other in others:
        metrics = other.label_metrics
        names = {metric: _column(other.benchmark, metric) for metric in metrics.of}
        for tuning in tunings:
            for before, after in _same_models(tuning.base, tuning.tuned, other.runs):
                columns += [column for column in names.values() if column not in columns]
                for label, run in ((tuning.base.label, before), (tuning.tuned.label, after)):
                    values = run_metrics(run, metrics, list(names), resamples=resamples, seed=other.seed)
                    rows.setdefault(label, {}).update(zip(names.values(), values, strict=True))
                pair = RunPair(before, after, metrics, resamples, other.seed)
                for metric, column in names.items():
                    difference = pair.compare(metrics.of[metric]).difference
                    rows.setdefault(f"{tuning.tuned.label} less {tuning.base.label}", {})[column] = difference
        shape = Table("main", "", tuple(names), ())
        for row, cells in comparable_rows(shape, other):
            paper_rows.setdefault(row, {}).update(zip(names.values(), cells, strict=True))
    if not rows:
        return None
    empty = dict.fromkeys(label for other in others if (label := empty_label(other.runs, other.label_metrics)))
    as_label = f", empty ones as {' or '.join(empty)}" if empty else ""
    return Table(
        "regressions",
        "Regressions on other benchmarks (CLASH's Tables 14 and 15)",
        tuple(columns),
        tuple(
            (label, tuple(cells.get(column) for column in columns))
            for label, cells in (*rows.items(), *paper_rows.items())
        ),
        (
            f"Each run over all its answers that count{as_label}; the row of differences over those that count in both.",
            INTERVALS,
        ),
        percent=True,
    )


def _column(benchmark: Benchmark, metric: str) -> str:
    title = benchmark.title.partition(":")[0]
    return metric if normalised_name(metric) == normalised_name(title) else f"{title} {metric}"
