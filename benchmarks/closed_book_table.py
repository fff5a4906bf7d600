"""Table of the right answers without any source, beside those with one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from benchmarks.answers import AnswerKind
from benchmarks.sheet import Column, Grid, Sheets
from benchmarks.stats.intervals import INTERVALS, ratio
from benchmarks.vocabulary import CLOSED_BOOK, Cell, Table

_NOTE = (
    "Shares of right answers. Without any source a right answer is remembered or guessed; only what a source adds to that is "
    "reading."
)


def closed_book_tables(sheets: Sheets, others: Mapping[str, Callable[[AnswerKind], bool]]) -> list[Table]:
    """Return the table ``closed-book``, or nothing if no run has that condition.

    ``others`` are the kinds of answers to compare with, by the name of their column.
    """
    if not any(kind.condition == CLOSED_BOOK for answers in sheets.runs.values() for kind in answers.kinds):
        return []
    views = {"no source": lambda kind: kind.condition == CLOSED_BOOK, **others}

    def places(kind: AnswerKind, labels: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        for place, is_in in enumerate(views.values()):
            if labels and is_in(kind):
                yield place, int(any(sheets.benchmark.correct(kind.condition, label) for label in labels))

    grid = Grid((len(views), 2), places)
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run in sheets.runs:
        sheet = sheets.sheet(run, grid)
        rows.append((run, (int(sheet.totals[0].sum()), *sheet.cells(map(_share_right, range(len(views)))))))
    return [sheets.finish(CLOSED_BOOK, "Right answers without any source", ("answers", *views), rows, _NOTE, INTERVALS)]


def _share_right(view: int) -> Column:
    return Column(
        lambda counts: ratio(counts[..., view, 1], counts[..., view, :].sum(-1)), lambda totals: totals[view].sum()
    )
