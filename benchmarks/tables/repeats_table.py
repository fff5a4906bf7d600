"""Table of the repeats of runs: the metrics of each, their spread, and how often an instance's answers agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.protocols.repeats import REPEAT
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import INTERVALS, ratio
from benchmarks.stats.paired_tests import contributing_labels, metric_range
from benchmarks.stats.repeated_answers import RepeatedClusters, agreeing_pairs
from benchmarks.tables.declared_tables import Column, Grid, Sheets, counted_codes
from benchmarks.vocabulary import Cell, Estimate, LabelMetrics, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.base import Benchmark

NAME = "repeats"
PAIRS, ALL = "pairs that agree", "instances that agree"


def repeats_table(
    benchmark: Benchmark, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int
) -> Table | None:
    """Return each repeat's metrics, their means and spread, and the agreement with itself; None without repeats."""
    runs = {run: answers for run, answers in runs.items() if answers.is_repeated}
    if not runs:
        return None
    sheets = Sheets(benchmark, runs, judge, resamples, seed)
    columns, grid = _columns(benchmark, judge)
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run, answers in runs.items():
        numbers = sorted({int(kind.strata[REPEAT]) for kind in answers.kinds})
        by_repeat = [sheets.sheet(run, grid, _of_repeat(number)).cells(columns.values()) for number in numbers]
        together = sheets.sheet(run, grid).cells(columns.values())
        rows += [(f"{run} / repeat {n}", (*cells, None, None)) for n, cells in zip(numbers, by_repeat, strict=True)]
        rows.append((f"{run} / mean", (*together, *_agreement(benchmark, answers, judge, len(numbers)))))
        spreads = tuple(_spread(cells) for cells in zip(*by_repeat, strict=True))
        rows.append((f"{run} / SD between repeats", (*spreads, None, None)))
    used = [i for i, cells in enumerate(zip(*(cells for _, cells in rows), strict=True)) if _has_value(cells)]
    names = (*columns, PAIRS, ALL)
    notes = (
        "Every instance was asked several times, each time with another seed.",
        f"`{PAIRS}`: of two answers to one instance, both with a label, the share with the same one. `{ALL}`: the share of "
        "instances whose answers all have the same label, of those whose answers all have a label.",
        "SD between repeats: the standard deviation of the repeats' values, by which other seeds would move a metric.",
        INTERVALS,
    )
    return sheets.finish(
        NAME,
        "Each repeat, and the agreement of a model with itself",
        [names[i] for i in used],
        [(name, tuple(cells[i] for i in used)) for name, cells in rows],
        *notes,
    )


def _of_repeat(number: int) -> Callable[[AnswerKind], bool]:
    return lambda kind: kind.strata[REPEAT] == str(number)


def _has_value(cells: tuple[Cell, ...]) -> bool:
    return any(isinstance(cell, Estimate) and cell.value is not None for cell in cells)


def _columns(benchmark: Benchmark, judge: str) -> tuple[dict[str, Column], Grid]:
    """Return the metrics that a benchmark compares runs by, and the grid of their conditions and labels."""
    metrics = benchmark.answer_metrics() or _accuracy(benchmark)
    conditions, labels = list(metrics.conditions), list(metrics.labels)

    def places(kind: AnswerKind, counted: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        label = counted[0] if len(counted) == 1 else kind.label(judge) if counted else None
        if label in labels and kind.condition in conditions:
            yield conditions.index(kind.condition), labels.index(label)

    columns = {
        name: Column(metric, _number_of(contributing_labels(metric, metrics)), within=metric_range(metric, metrics))
        for name, metric in metrics.of.items()
    }
    return columns, Grid((len(conditions), len(labels)), places)


def _number_of(behind: NDArray[np.bool_]) -> Callable[[Any], Any]:
    return lambda totals: totals[behind].sum()


def _accuracy(benchmark: Benchmark) -> LabelMetrics:
    """Return the accuracy under the conditions under which an answer is right or wrong by itself."""
    conditions = tuple(name for name in benchmark.conditions if name in benchmark.counted_conditions)
    scores = np.array([[benchmark.score(name, label) for label in benchmark.labels] for name in conditions])

    def accuracy(counts: Any) -> Any:
        return ratio((counts * scores).sum((-2, -1)), counts.sum((-2, -1)))

    return LabelMetrics(conditions, benchmark.labels, {"Accuracy": accuracy}, benchmark.unparsed_label)


def _spread(cells: tuple[Estimate, ...]) -> Estimate:
    """Return the standard deviation of the values of a metric in each repeat."""
    values = [cell.value for cell in cells if cell.value is not None]
    if len(values) < 2:
        return Estimate(None, reason="one repeat has a value")
    return Estimate(float(np.std(values, ddof=1)), n=len(values))


def _agreement(benchmark: Benchmark, answers: Answers, judge: str, repeats: int) -> tuple[Estimate, Estimate]:
    """Return the share of pairs of answers to one instance that have one label, and of instances whose answers all have."""
    codes = counted_codes(benchmark, answers, judge)
    counted = np.flatnonzero(codes >= 0)
    clusters = answers.clusters.at(counted)
    assert isinstance(clusters, RepeatedClusters)
    first = np.unique(clusters.instance, return_index=True)[1]
    same, pairs, labelled = agreeing_pairs(clusters.instance, codes[counted])
    is_complete = labelled == repeats
    reason = "no instance has two labels"
    shares = []
    for behind, hits, weight in (
        (pairs > 0, same / np.maximum(pairs, 1), pairs),
        (is_complete, same == pairs, is_complete),
    ):
        of_instances = Clusters.of(clusters.own[first[behind]], clusters.shown[first[behind]])
        share = of_instances.mean(hits[behind], weight[behind]) if behind.any() else Estimate(None, reason=reason)
        shares.append(replace(share, n=int(weight[behind].sum())))
    return shares[0], shares[1]
