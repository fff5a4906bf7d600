"""Tables declared by their cells, columns and rows: counted, resampled and explained in one place.

A benchmark declares once how an answer counts (:meth:`Benchmark.counted_labels`). A :class:`Grid` says into which cells of a
table an answer with these labels falls, a :class:`Column` what is computed of the counts, and a :class:`Layout` puts columns,
rows and notes together. :class:`Sheets` fills layouts with the answers of runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import INTERVALS, SHARE, Draws
from benchmarks.stats.repeated_answers import distinct_share, metric_estimate
from benchmarks.tables.missing_labels import missing_notes
from benchmarks.vocabulary import Cell, Chart, Estimate, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.base import Benchmark

    Array = NDArray[np.float64]

REPEATS = (
    "With repeats: answers and examples count once in each repeat; intervals are over clusters, and take answers to one "
    "instance as one as far as they agree."
)
"""The note of tables of runs with repeats."""


Places = Iterable[Sequence[int]]


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of a table.

    Attributes:
        shape: The shape of the counts of an example.
        places: A function from a kind of answer, and the labels that it counts as, to its cells; an answer without labels
            does not count. A cluster of which no answer has a cell is not drawn.
        every_example: True to draw such clusters, too.
    """

    shape: tuple[int, ...]
    places: Callable[[AnswerKind, tuple[str, ...]], Places]
    every_example: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A metric of a table.

    Attributes:
        of: The metric, as a function of counts of shape (..., *cells) that returns shape (...); nan is undefined.
        rests_on: The number of answers behind it, from the total counts; all of them unless given.
        reason: The reason why it is undefined, from the total counts.
        within: Its range, by which its interval is computed; None where it has none. See :func:`estimate`.
    """

    of: Callable[[Array], Array]
    rests_on: Callable[[Array], Any] = lambda totals: totals.sum()
    reason: Callable[[Array], str] = lambda totals: "no labelled answer"
    within: tuple[float, float] | None = SHARE


class Sheet:
    """The counts of a run's answers in the cells of a grid, their totals, and their resamples over clusters.

    ``counts`` has shape (clusters, *cells); ``missing``, of shape (*cells), counts answers without a label as if they had one;
    ``own``, of the shape of ``counts``, leaves out what clusters show of others. Of the answers of a run with repeats, a share is
    ``distinct``; see :meth:`RepeatedClusters.distinct`.
    """

    def __init__(
        self,
        counts: NDArray[Any],
        resamples: int,
        seed: int,
        missing: NDArray[Any] | None = None,
        own: NDArray[Any] | None = None,
        distinct: float = 1.0,
    ) -> None:
        self.counts = counts
        self.distinct = distinct
        self._own = counts if own is None else own
        self.totals: Array = counts.sum(0).astype(float)
        self.missing: Array = np.zeros_like(self.totals) if missing is None else missing.astype(float)
        self._resamples, self._seed = resamples, seed

    @cached_property
    def draws(self) -> Draws:
        """The totals and their resamples."""
        return Draws.of(self.counts, self._resamples, self._seed)

    def cells(self, columns: Iterable[Column], at: Any = (), *, spread: bool = False) -> tuple[Estimate, ...]:
        """Return the estimates of columns over the part ``at`` of the cells; with ``spread``, with standard deviations."""
        place = at if isinstance(at, tuple) else (at,)
        totals, missing, counts = self.totals[place], self.missing[place], self.counts[(slice(None), *place)]
        estimates = []
        for column in columns:
            shape = np.shape(column.of(np.stack([totals, totals])))
            if shape != (2,):
                raise ValueError(
                    f"a column gives shape {shape} for counts of shape {(2, *totals.shape)}; it must give one value for each of "
                    "the first axis, so index and sum the last axes: counts[..., 0], counts.sum(-1)."
                )
            cell = metric_estimate(
                column.of,
                counts,
                int(column.rests_on(totals)),
                lambda: self.draws.at(place),
                clusters=self._clusters_behind(column, place, totals.shape),
                within=column.within,
                distinct=self.distinct,
                reason=column.reason(totals),
            )
            sd = None
            if spread and cell.low is not None:
                sd = float(np.nanstd(self.draws.at(place).replicates(column.of)))
            estimates.append(replace(cell, sd=sd, missing=int(column.rests_on(missing))))
        return tuple(estimates)

    def _clusters_behind(self, column: Column, place: tuple[Any, ...], shape: tuple[int, ...]) -> int:
        """Return the number of clusters that have an answer behind a column."""
        behind = self._own[(slice(None), *place)].reshape(len(self._own), math.prod(shape)) @ _cells_behind(
            column.rests_on, shape
        )
        return int((behind > 0).sum())


@lru_cache(maxsize=256)
def _cells_behind(rests_on: Callable[[Array], Any], shape: tuple[int, ...]) -> Array:
    """Return which cells count for ``rests_on``, a number of answers, as 0 and 1; shape (cells,)."""
    size = math.prod(shape)
    return np.array([float(rests_on(one.reshape(shape)) > 0) for one in np.eye(size)])


@dataclass(frozen=True, slots=True)
class Row:
    """A row of each run: what its name adds to the run's, the part of the cells, and the kinds of answers (None: all).

    ``grid`` is its grid, if not the layout's, such as for another reading of the answers.
    """

    suffix: str = ""
    at: Any = ()
    of: Callable[[AnswerKind], bool] | None = None
    grid: Grid | None = None


def one_row(answers: Answers) -> Sequence[Row]:
    """Return a row for the whole run."""
    return (Row(),)


@dataclass(frozen=True, eq=False)
class Layout:
    """A declared table; ``rows`` returns the rows of a run, and ``columns`` names the columns' metrics."""

    name: str
    title: str
    grid: Grid
    columns: Mapping[str, Column]
    rows: Callable[[Answers], Iterable[Row]] = one_row
    notes: tuple[str, ...] = (INTERVALS,)
    spread: bool = False
    percent: bool = False
    chart: Chart | None = None
    judges: tuple[str, ...] | None = None
    """See :attr:`Table.judges`; a table of other judges has no notes on the answers that it leaves out."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Answers, such as those of a run under one condition, and the judge whose labels of them count."""

    answers: Answers
    judge: str


@dataclass(frozen=True, eq=False)
class Sheets:
    """The sheets of runs, by label, under one judge; each is counted once.

    ``judges`` has the judge of each run that may have another one.
    """

    benchmark: Benchmark
    runs: Mapping[str, Answers]
    judge: str
    resamples: int
    seed: int
    judges: Mapping[str, str] = field(default_factory=dict)
    _sheets: dict[tuple[Any, ...], Sheet] = field(default_factory=dict, repr=False)

    def parts(self, parts: Mapping[str, Part]) -> Sheets:
        """Return the sheets of parts of the runs, by label."""
        runs = {label: part.answers for label, part in parts.items()}
        judges = {label: part.judge for label, part in parts.items()}
        return Sheets(self.benchmark, runs, self.judge, self.resamples, self.seed, judges)

    def judge_of(self, run: str) -> str:
        """Return the judge whose labels of a run count."""
        return self.judges.get(run, self.judge)

    def sheet(self, run: str, grid: Grid, of: Callable[[AnswerKind], bool] | None = None) -> Sheet:
        """Return the counts of a run's answers in ``grid``, of all kinds or of some."""
        if (key := (run, grid, of)) not in self._sheets:
            counted = (self.benchmark, self.runs[run], self.judge_of(run), grid, of)
            answers = self.runs[run]
            own = count(*counted, shown=False) if answers.clusters.shown.size else None
            distinct = 1.0
            if answers.is_repeated:
                codes = counted_codes(self.benchmark, answers, self.judge_of(run), of)
                distinct = distinct_share(answers.clusters.at(codes >= 0), codes[codes >= 0])
            self._sheets[key] = Sheet(
                count(*counted), self.resamples, self.seed, count_missing(*counted), own, distinct
            )
        return self._sheets[key]

    def by_example(self, run: str, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the counts of each example of a run, and the number of its cluster; shapes (examples, *cells), (examples,)."""
        answers = self.runs[run]
        counted = replace(grid, every_example=True)
        counts = count(self.benchmark, answers, self.judge_of(run), counted, by_example=True)
        return counts, answers.cluster_of_examples()

    def of_examples(self, counts: NDArray[Any], cluster: NDArray[np.int64], distinct: float = 1.0) -> Sheet:
        """Return the sheet of counts of examples, shape (examples, *cells), that belong to these clusters."""
        return Sheet(Clusters.of(cluster).sums(counts), self.resamples, self.seed, distinct=distinct)

    def table(self, layout: Layout) -> Table:
        """Return a declared table, with notes on the answers that it leaves out."""
        columns = layout.columns
        rows = [
            (
                f"{run}{row.suffix}",
                self.sheet(run, row.grid or layout.grid, row.of).cells(columns.values(), row.at, spread=layout.spread),
            )
            for run, answers in self.runs.items()
            for row in layout.rows(answers)
        ]
        return self.finish(
            layout.name,
            layout.title,
            columns,
            rows,
            *layout.notes,
            percent=layout.percent,
            chart=layout.chart,
            judges=layout.judges,
        )

    def finish(
        self,
        name: str,
        title: str,
        columns: Iterable[str],
        rows: Iterable[tuple[str, tuple[Cell, ...]]],
        *notes: str,
        percent: bool = False,
        chart: Chart | None = None,
        judges: tuple[str, ...] | None = None,
    ) -> Table:
        """Return a table of these rows; as for a layout, with notes on the answers that it leaves out."""
        rows = tuple(rows)
        repeats = (REPEATS,) if any(answers.is_repeated for answers in self.runs.values()) else ()
        all_notes = (*(self.missing if judges is None else ()), *notes, *repeats)
        judges = other_judges(self.judge, self.judges.values()) if judges is None else judges
        return Table(name, title, tuple(columns), rows, all_notes, percent=percent, judges=judges, chart=chart)

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """Notes on the empty answers that count, and on the answers that do not."""
        return missing_notes(self.benchmark, self.runs, self.judge, self.judges)


def count(
    benchmark: Benchmark,
    answers: Answers,
    judge: str,
    grid: Grid,
    of: Callable[[AnswerKind], bool] | None = None,
    *,
    by_example: bool = False,
    shown: bool = True,
) -> NDArray[np.int64]:
    """Return the number of answers of each cluster in each cell; shape (clusters, *grid.shape).

    ``by_example``: of each example instead; without ``shown``, without what clusters show of others.
    """

    def places(kind: AnswerKind) -> Places:
        return grid.places(kind, benchmark.counted_labels(kind, judge)) if of is None or of(kind) else ()

    return answers.counts(grid.shape, places, every_example=grid.every_example, by_example=by_example, shown=shown)


def counted_codes(
    benchmark: Benchmark, answers: Answers, judge: str, of: Callable[[AnswerKind], bool] | None = None
) -> NDArray[np.int64]:
    """Return a number for the labels that each answer counts as, -1 for one that does not count; shape (answers,)."""
    numbers: dict[tuple[str, ...], int] = {}

    def code(kind: AnswerKind) -> int:
        labels = benchmark.counted_labels(kind, judge) if of is None or of(kind) else ()
        return numbers.setdefault(labels, len(numbers)) if labels else -1

    return answers.codes(code)


def count_missing(
    benchmark: Benchmark,
    answers: Answers,
    judge: str,
    grid: Grid,
    of: Callable[[AnswerKind], bool] | None = None,
) -> NDArray[np.int64]:
    """Return the number of answers without a label, in the cells of the first label; shape (*grid.shape)."""
    totals = np.zeros(grid.shape, dtype=np.int64)
    for kind, size in zip(answers.kinds, answers.sizes.tolist(), strict=True):
        if not size or (of is not None and not of(kind)) or benchmark.counted_labels(kind, judge):
            continue
        if not benchmark.left_out(kind) and not [*grid.places(kind, ())]:
            first = next(filter(None, ([*grid.places(kind, (label,))] for label in benchmark.labels)), [])
            for place in first:
                totals[tuple(place)] += size
    return totals


def answers_where(answers: Answers, test: Callable[[AnswerKind], bool]) -> Answers:
    """Return the answers whose kind passes a test, without the kinds that do not occur among them."""
    part = answers.where(test)
    numbers, kind = np.unique(part.kind, return_inverse=True)
    return replace(part, kinds=[answers.kinds[number] for number in numbers.tolist()], kind=kind.astype("int32"))


def judges_under(answers: Answers, conditions: Collection[str]) -> frozenset[str]:
    """Return the judges that have a verdict on an answer under one of the conditions."""
    return frozenset(judge for kind in answers.kinds if kind.condition in conditions for judge in kind.verdicts)


def newest_judge(name: str, ids: Iterable[str]) -> str | None:
    """Return the newest version among ``ids`` of the judge ``name``; None if there is none."""
    versions = (judge for judge in ids if judge.rpartition("@")[0] == name)
    return max(versions, key=lambda judge: (len(judge), judge), default=None)


def other_judges(judge: str, used: Iterable[str]) -> tuple[str, ...] | None:
    """Return the judges that a table uses, for :attr:`Table.judges`; None if there is no other than ``judge``."""
    judges = tuple(dict.fromkeys(used))
    return None if {*judges} <= {judge} else judges
