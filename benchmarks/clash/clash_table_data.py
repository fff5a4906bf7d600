"""Building blocks of the tables: the answers behind their rows, the metrics of these, and tables with their notes.

The tables are not declared as layouts, because the reason why a metric is undefined names the judge of its row and the conditions
that its run was not asked under, which no counts tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from benchmarks.answers import AnswerKind
from benchmarks.clash.clash_constants import CONDITIONS, LABELS
from benchmarks.clash.clash_metrics import LabelRate
from benchmarks.tables.declared_tables import Column, Grid, Part, Sheets, answers_where, judges_under, newest_judge
from benchmarks.vocabulary import Cell, Chart, Estimate, Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Parts = Mapping[str, Part]
Rates = Mapping[str, LabelRate]
Rows = Sequence[tuple[str, tuple[Cell, ...]]]
Test = Callable[[AnswerKind], bool]

SHAPE = (len(CONDITIONS), len(LABELS) + 1)
ANSWERED = len(LABELS)
"""The place of the number of answers under a condition; as an answer can have several labels, these do not sum to it."""


def cells_of(kind: AnswerKind, labels: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Return the cells of an answer that is counted and has these labels."""
    condition = CONDITIONS.index(kind.condition)
    return ((condition, place) for place in (ANSWERED, *map(LABELS.index, {*labels})))


EVERY_MATCH = Grid(SHAPE, lambda kind, labels: cells_of(kind, labels) if labels else ())
"""Every label that fits, and the number of answers, under each condition."""


def parts(base: Sheets, *conditions: str, change: str = "", every_run: bool = False) -> dict[str, Part]:
    """Return the answers under some conditions, by run, of one kind of change or of all but spatial.

    They are labelled by the requested judge, or by ``strict`` if only that has labelled any under these conditions. Runs
    without such answers are left out unless ``every_run``.
    """

    def is_asked(kind: AnswerKind) -> bool:
        own = kind.strata.get("change", "")
        return kind.condition in conditions and (own == change if change else own != "spatial")

    asked = {run: answers_where(answers, is_asked) for run, answers in base.runs.items()}
    return {
        run: Part(answers, judge_for(base, run, *conditions))
        for run, answers in asked.items()
        if every_run or len(answers)
    }


def judge_for(base: Sheets, run: str, *conditions: str) -> str:
    """Return the requested judge, or ``strict`` if only that has labels of a run under these conditions."""
    strict, judges = newest_version(base, run, "strict"), judges_under(base.runs[run], conditions)
    return strict if strict in judges and base.judge not in judges else base.judge


def newest_version(base: Sheets, run: str, name: str) -> str:
    """Return the newest version of the judge ``name`` that has labels of a run; ``name`` if there is none."""
    return newest_judge(name, base.runs[run].judges) or name


def has(stratum: str, value: str) -> Test:
    """Return a test for the answers with this value of a stratum."""
    return lambda kind: kind.strata.get(stratum) == value


def metrics(
    sheets: Sheets, run: str, columns: Rates, of: Test | None = None, grid: Grid = EVERY_MATCH
) -> tuple[Estimate, ...]:
    """Return metrics of a run, of all its answers or of some, with bootstrap deviations and intervals over samples."""

    def column(rate: LabelRate) -> Column:
        places = [CONDITIONS.index(condition) for condition in rate.conditions]

        def reason(totals: NDArray[np.float64]) -> str:
            if totals[places, ANSWERED].all():
                return ""
            asked = sheets.runs[run].count(lambda kind: kind.condition if of is None or of(kind) else None)
            if missing := [condition for condition in rate.conditions if condition not in asked]:
                return f"nothing was asked under {', '.join(missing)}"
            return f"{sheets.judge_of(run)} has labelled no answer under {' or '.join(rate.conditions)}"

        return Column(
            lambda counts: rate(counts[..., :ANSWERED], counts[..., ANSWERED]),
            lambda totals: totals[places, ANSWERED].sum(),
            reason,
        )

    return sheets.sheet(run, grid, of).cells(map(column, columns.values()), spread=True)


def table_by_run(sheets: Sheets, name: str, title: str, columns: Rates, *notes: str) -> Table:
    """Return a table with a row for each run."""
    return table(sheets, name, title, columns, [(run, metrics(sheets, run, columns)) for run in sheets.runs], *notes)


def table(
    sheets: Sheets,
    name: str,
    title: str,
    columns: Iterable[str],
    rows: Rows,
    *notes: str,
    rows_name_judges: bool = False,
    chart: Chart | None = None,
) -> Table:
    """Return a table in percent, with notes on deviations, and on the judges of its rows unless these name them."""
    deviations = [cell.sd for _, cells in rows for cell in cells if isinstance(cell, Estimate) and cell.sd is not None]
    spread = []
    if deviations:
        spread.append(f"±: standard deviation over {sheets.resamples:,} bootstrap resamples of the samples.")
    if 0 in deviations:
        spread.append("A deviation of 0 means that all answers agree, not that the metric is certain.")
    by = [] if rows_name_judges else judge_notes(sheets.judges, sheets.judge)
    return sheets.finish(name, title, columns, rows, *spread, *notes, *by, percent=True, chart=chart)


def judge_notes(judges: Mapping[str, str], requested: str) -> list[str]:
    """Return notes on the rows by another judge than the requested one, unless one judge labels all rows."""
    rows: dict[str, list[str]] = {}
    for row, judge in judges.items():
        rows.setdefault(judge, []).append(row)
    if len(rows) < 2:
        return []
    return [f"Labelled by {judge}: {', '.join(names)}." for judge, names in rows.items() if judge != requested]
