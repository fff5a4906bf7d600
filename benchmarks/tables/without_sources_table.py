"""Table of the answers without sources, beside those to the same examples with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.failure_table import failures_table
from benchmarks.stats.intervals import INTERVALS
from benchmarks.tables.declared_tables import Sheets, answers_where
from benchmarks.vocabulary import WITHOUT_SOURCES, Cell, Estimate, Table

if TYPE_CHECKING:
    from benchmarks.base import Benchmark

_COLUMNS = ("answers", "without", "chance", "with sources", "difference")
_NOTE = (
    "Shares of right answers. Without what the condition leaves out, a right answer is known, guessed or given away by the rest; "
    "only what the sources add is read in them. Chance: one of the options at random, and no open answer. With sources, and the "
    "difference: over the same examples, paired."
)

_UNREAD = "Answers: also those in which no answer can be read. They count as wrong, with and without sources."


def benchmark_tables(
    benchmark: Benchmark, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int
) -> list[Table]:
    """Return the tables of a benchmark, which count no answer without sources, and the table of those if there are any.

    The table ``failures`` has all answers.
    """
    partial = benchmark.without_sources
    tables = benchmark.tables(with_sources(benchmark, runs), judge, resamples=resamples, seed=seed)
    runs = {run: answers for run, answers in runs.items() if any(kind.condition in partial for kind in answers.kinds)}
    if not runs:
        return tables
    lost = failures_table(runs, judge, tuple(partial)).rows
    tables = [replace(t, rows=(*t.rows, *lost)) if t.name == "failures" else t for t in tables]
    return [*tables, _without_sources_table(benchmark, runs, judge, resamples, seed)]


def with_sources(benchmark: Benchmark, runs: Mapping[str, Answers]) -> dict[str, Answers]:
    """Return the answers of runs that the tables of papers count: all but those without sources."""

    def is_full(kind: AnswerKind) -> bool:
        return kind.condition not in benchmark.without_sources

    return {
        run: answers if all(map(is_full, answers.kinds)) else answers_where(answers, is_full)
        for run, answers in runs.items()
    }


def _without_sources_table(
    benchmark: Benchmark, runs: Mapping[str, Answers], judge: str, resamples: int, seed: int
) -> Table:
    partial = benchmark.without_sources
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run, answers in runs.items():
        present = answers.count(lambda kind: kind.condition)
        for condition in filter(present.__contains__, partial):
            # A run may have none of the conditions with sources; its answers are then scored by the first of them.
            for full in [name for name in partial[condition] if name in present] or partial[condition][:1]:
                suffix = f" / {full}" if len(partial[condition]) > 1 else ""
                rows.append((f"{run} / {condition}{suffix}", _cells(benchmark, answers, judge, condition, full)))
    counted = {run: answers_where(answers, lambda kind: kind.condition in partial) for run, answers in runs.items()}
    sheets = Sheets(benchmark, counted, judge, resamples, seed)
    counts = [
        f"{name}: {cells[3].n}" for name, cells in rows if isinstance(cells[3], Estimate) and cells[3].n != cells[0]
    ]
    fewer = [f"Answers with sources, where their number differs: {'; '.join(counts)}."] if counts else []
    unread = [] if benchmark.unparsed_label is None else [_UNREAD]
    return sheets.finish(
        WITHOUT_SOURCES, "Right answers without sources", _COLUMNS, rows, _NOTE, *unread, *fewer, INTERVALS
    )


def _cells(benchmark: Benchmark, answers: Answers, judge: str, condition: str, full: str) -> tuple[Cell, ...]:
    """Return the cells of a condition without sources, compared with the condition ``full``."""

    def alone(kind: AnswerKind) -> float | None:
        labels = benchmark.counted_labels(kind, judge) if kind.condition == condition else ()
        return max((benchmark.score_without_sources(condition, full, label) for label in labels), default=None)

    def chance(kind: AnswerKind) -> float | None:
        choices = kind.instance.choices
        return None if alone(kind) is None else 1 / choices if choices else 0.0

    def beside(kind: AnswerKind) -> float | None:
        return benchmark.score_with_sources(kind, judge) if kind.condition == full else None

    without, _ = answers.mean_score(alone)
    chances, scores, others = map(answers.scores, (chance, alone, beside))
    chances = chances[~np.isnan(chances)]
    # An example may have several answers of a kind: each one with sources is compared with the mean of those without.
    places = np.flatnonzero(~np.isnan(scores))
    sums, sizes = (
        np.bincount(answers.group[places], weights, minlength=int(answers.group.max()) + 1)
        for weights in (scores[places], None)
    )
    paired = np.flatnonzero(~np.isnan(others) & (sizes[answers.group] > 0))
    groups, clusters = answers.group[paired], answers.clusters.at(paired)
    difference = clusters.difference(others[paired] - sums[groups] / sizes[groups])
    unpaired = Estimate(None, reason=f"no example has a labelled answer under {full}, too")
    return (
        without.n,
        without,
        Estimate(float(chances.mean()), n=len(chances)) if chances.any() else Estimate(None, reason="open questions"),
        clusters.mean(others[paired]) if len(paired) else unpaired,
        difference.estimate if difference else unpaired,
    )
