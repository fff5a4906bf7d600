"""Table of the bounds of a benchmark's metrics while a judge has not decided some answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.answers import AnswerKind, Answers
from benchmarks.stats.intervals import INTERVALS, Draws
from benchmarks.stats.metric_extremes import extremes
from benchmarks.stats.paired_tests import contributing_labels, metric_range
from benchmarks.stats.repeated_answers import distinct_share, metric_estimate
from benchmarks.vocabulary import Cell, LabelMetrics, Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "bounds"


def undecided_table(
    runs: Mapping[str, Answers], judge: str, metrics: LabelMetrics, *, resamples: int, seed: int
) -> Table | None:
    """Return each metric at its least and at its greatest, whatever the undecided answers turn out to be.

    None where the judge has decided every answer that counts. Each interval is that of the bootstrap with the undecided
    answers labelled as at that bound.
    """
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run, answers in runs.items():
        counts = label_counts(answers, judge, metrics)
        undecided = counts[..., -1]
        total = int(undecided.sum())
        if total:
            distinct = _distinct(answers, judge, metrics)
            bounds = [_bounds(counts, metric, metrics, resamples, seed, distinct) for metric in metrics.of.values()]
            rows.append((f"{run} / least", (total, *(least for least, _ in bounds))))
            rows.append((f"{run} / greatest", (total, *(greatest for _, greatest in bounds))))
    if not rows:
        return None
    notes = (
        "The tables count the answers that the judge has decided. Here every undecided answer counts too, with the labels that "
        "make the metric least, and with those that make it greatest. A model or a person can decide them: --judge "
        "first(match, MODEL), or `rashomon label`.",
        f"{INTERVALS[:-1]}, with these labels.",
    )
    return Table(NAME, "Bounds while answers are undecided", ("undecided", *metrics.of), tuple(rows), notes)


def label_counts(answers: Answers, judge: str, metrics: LabelMetrics) -> NDArray[np.int64]:
    """Return the number of answers of each cluster by condition and label; shape (clusters, conditions, labels + 1).

    The last are the undecided ones.
    """
    conditions = {condition: place for place, condition in enumerate(metrics.conditions)}
    labels = {label: place for place, label in enumerate(metrics.labels)}

    def cell(kind: AnswerKind) -> Sequence[int] | None:
        outcome = kind.outcome(judge)
        label = kind.label(judge) if outcome == "labelled" else metrics.unparsed if outcome == "unparsed" else None
        place = len(labels) if outcome == "undecided" else labels.get(label or "")
        return None if place is None or kind.condition not in conditions else (conditions[kind.condition], place)

    return answers.cells((len(conditions), len(labels) + 1), cell)


def _distinct(answers: Answers, judge: str, metrics: LabelMetrics) -> float:
    """Return how distinct a run's answers are by outcome; see :meth:`RepeatedClusters.distinct`."""
    if not answers.is_repeated:
        return 1.0
    outcomes = [*metrics.labels, "unparsed", "undecided"]

    def code(kind: AnswerKind) -> int:
        outcome = kind.outcome(judge)
        name = kind.label(judge) if outcome == "labelled" else outcome
        return outcomes.index(name) if name in outcomes and kind.condition in metrics.conditions else -1

    codes = answers.codes(code)
    return distinct_share(answers.clusters.at(codes >= 0), codes[codes >= 0])


def _bounds(
    counts: NDArray[np.int64],
    metric: Callable[[Any], Any],
    metrics: LabelMetrics,
    resamples: int,
    seed: int,
    distinct: float,
) -> tuple[Cell, Cell]:
    counted_labels = contributing_labels(metric, metrics)
    known, undecided = counts[..., :-1], counts[..., -1]
    totals = known.sum(0).astype(float)
    blocks = [(float(count), 0, condition) for condition, count in enumerate(undecided.sum(0).tolist()) if count]
    ends = []
    for labels in extremes(metric, totals, blocks):
        filled = known.astype(float)
        for (_, _, condition), label in zip(blocks, labels.tolist(), strict=True):
            filled[:, condition, label] += undecided[:, condition]
        ends.append(
            metric_estimate(
                metric,
                filled,
                int(filled.sum(0)[counted_labels].sum()),
                partial(Draws.of, filled, resamples, seed),
                distinct=distinct,
                clusters=int((filled[:, counted_labels].sum(1) > 0).sum()),
                within=metric_range(metric, metrics),
                reason="it rests on labels that the run lacks",
            )
        )
    return ends[0], ends[1]
