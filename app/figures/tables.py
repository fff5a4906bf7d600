"""Which figures a benchmark's tables make, and drawing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.figures.drawing import Bar, Point, bars, heat, scatter, stacked
from benchmarks.base import Cell, Estimate, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GB = 1e9


def draw(table: Table, *, width: str) -> Figure | None:
    """The figure of a table; None where its paper draws none, or there is nothing to draw."""
    if table.chart == "turned":
        table = _turned(table)
    if table.chart is None or not table.rows:
        return None
    if table.chart == "stacked":
        return stacked(_grouped(table), table.columns, title=table.title, width=width)
    if table.chart == "bars":
        series = [(label, [_estimate(cell) for cell in cells]) for label, cells in table.rows]
        return bars(series, table.columns, title=table.title, width=width)
    rows = [(label, [_estimate(cell).value for cell in cells]) for label, cells in table.rows]
    return heat(rows, table.columns, title=table.title, width=width, star=len(rows) > 1)


def quality_and_memory(main: Table, column: str, peaks: Mapping[str, int], *, width: str) -> Figure | None:
    """The figure of ``column`` of the main table against each run's peak memory, which ``peaks`` gives in bytes.

    None where fewer than two runs have both.
    """
    at = main.columns.index(column)
    points = [Point(label, peaks[label] / _GB, _estimate(cells[at])) for label, cells in main.rows if peaks.get(label)]
    if sum(point.y.value is not None for point in points) < 2:
        return None
    title = f"{column} against peak memory"
    return scatter(points, x="peak memory, GB", y=column, title=title, width=width)


def _grouped(table: Table) -> Sequence[tuple[str, Sequence[Bar]]]:
    """The rows by what stands after their run, a group each; of one run alone, one group of all."""
    split = [(*_run_and_what(label), [_estimate(cell).value for cell in cells]) for label, cells in table.rows]
    if len({run for run, _, _ in split}) == 1:
        return [("", [Bar(what or run, shares) for run, what, shares in split])]
    groups: dict[str, list[Bar]] = {}
    for run, what, shares in split:
        groups.setdefault(what, []).append(Bar(run, shares))
    return list(groups.items())


def _turned(table: Table) -> Table:
    """``table`` with a row for each of its columns, in which its rows' shares stand beside each other.

    A column that is n/a throughout is left out.
    """
    known = [
        i for i in range(len(table.columns)) if any(_estimate(cells[i]).value is not None for _, cells in table.rows)
    ]
    found: dict[str, dict[str, Sequence[Cell]]] = {}
    for label, cells in table.rows:
        what, _, share = label.rpartition(" / ")
        found.setdefault(what, {})[share] = cells
    shares = tuple(dict.fromkeys(share for each in found.values() for share in each))
    rows = tuple(
        (f"{what}, {table.columns[i]}", tuple(each[share][i] if share in each else None for share in shares))
        for what, each in found.items()
        for i in known
    )
    return replace(table, columns=shares, rows=rows, chart="stacked")


def _run_and_what(label: str) -> tuple[str, str]:
    run, _, what = label.rpartition(" / ")
    return (run, what) if run else (what, "")


def _estimate(cell: Cell) -> Estimate:
    if isinstance(cell, Estimate):
        return cell
    return Estimate(float(cell)) if isinstance(cell, int) else Estimate(None)
