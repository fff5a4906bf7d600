"""Figures of a benchmark's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from app.figures.confidence_figures import draw_confidence, draw_preference, draw_reliability
from app.figures.distribution_figures import Panel, count_panels, sunburst
from app.figures.dose_curve_figures import draw_curves
from app.figures.figure_drawing import Bar, Point, bars, lines, risk_coverage, scatter, stacked
from app.figures.heat_map import heat
from benchmarks.vocabulary import Cell, Estimate, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GB = 1e9


def draw_table(table: Table, *, width: str) -> Figure | None:
    """Draw the figure of a table; None if its paper has none, or there is nothing to draw."""
    if table.drawn:
        table = _drawn_part(table)
    if table.chart == "turned":
        table = _turned(table)
    if table.chart is None or not table.rows:
        return None
    draw = _DRAWERS.get(table.chart, _draw_heat)
    return draw(table, width=width)


def draw_quality_and_memory(main: Table, column: str, peaks: Mapping[str, int], *, width: str) -> Figure | None:
    """Draw ``column`` of the main table against each run's peak memory, given in bytes by ``peaks``.

    Return None if fewer than two runs have both.
    """
    at = main.columns.index(column)
    points = [Point(label, peaks[label] / _GB, _estimate(cells[at])) for label, cells in main.rows if peaks.get(label)]
    if sum(point.y.value is not None for point in points) < 2:
        return None
    title = f"{column} against peak memory"
    return scatter(points, x="peak memory, GB", y=column, title=title, width=width)


def _draw_counts(table: Table, *, width: str) -> Figure | None:
    return count_panels(_panels(table), table.columns, title=table.title, width=width)


def _draw_sunburst(table: Table, *, width: str) -> Figure | None:
    return sunburst({name: _count(cells[0]) for name, cells in table.rows}, title=table.title, width=width)


def _draw_stacked(table: Table, *, width: str) -> Figure | None:
    return stacked(_grouped(table), table.columns, title=table.title, width=width)


def _draw_bars(table: Table, *, width: str) -> Figure | None:
    return bars(_series(table), table.columns, title=table.title, width=width)


def _draw_lines(table: Table, *, width: str) -> Figure | None:
    return lines(_series(table), table.columns, title=table.title, width=width)


def _draw_risk_coverage(table: Table, *, width: str) -> Figure | None:
    curve = [(label, _estimate(cells[0]), _estimate(cells[1])) for label, cells in table.rows]
    return risk_coverage(curve, title=table.title, width=width)


def _draw_heat(table: Table, *, width: str) -> Figure | None:
    rows = [(label, [_estimate(cell).value for cell in cells]) for label, cells in table.rows]
    return heat(rows, table.columns, title=table.title, width=width, star=len(rows) > 1)


class _Drawer(Protocol):
    def __call__(self, table: Table, *, width: str) -> Figure | None: ...


_DRAWERS: Mapping[str, _Drawer] = {
    "counts": _draw_counts,
    "sunburst": _draw_sunburst,
    "reliability": draw_reliability,
    "confidence": draw_confidence,
    "preference": draw_preference,
    "curves": draw_curves,
    "stacked": _draw_stacked,
    "bars": _draw_bars,
    "risk-coverage": _draw_risk_coverage,
    "lines": _draw_lines,
}
"""The functions that draw tables, by the kind of figure; a heat map is the default."""


def _series(table: Table) -> list[tuple[str, list[Estimate]]]:
    return [(label, [_estimate(cell) for cell in cells]) for label, cells in table.rows]


def _drawn_part(table: Table) -> Table:
    """Return the columns of ``table`` that its figure shows."""
    columns = [table.columns.index(name) for name in table.drawn]
    rows = tuple((label, tuple(cells[i] for i in columns)) for label, cells in table.rows)
    return replace(table, columns=table.drawn, rows=rows, drawn=())


def _panels(table: Table) -> Sequence[Panel]:
    """Group the rows of counts by the part of their label before the first slash."""
    panels: dict[str, list[tuple[str, Sequence[int]]]] = {}
    for name, cells in table.rows:
        heading, _, bar = name.partition(" / ")
        panels.setdefault(heading, []).append((bar, [_count(cell) for cell in cells]))
    return [Panel(heading, bars) for heading, bars in panels.items()]


def _count(cell: Cell) -> int:
    return cell if isinstance(cell, int) else 0


def _grouped(table: Table) -> Sequence[tuple[str, Sequence[Bar]]]:
    """Group the rows by the part of their label after the run; a single run forms a single group."""
    split_rows = [(*_split_label(label), [_estimate(cell).value for cell in cells]) for label, cells in table.rows]
    if len({run for run, _, _ in split_rows}) == 1:
        return [("", [Bar(name or run, shares) for run, name, shares in split_rows])]
    groups: dict[str, list[Bar]] = {}
    for run, name, shares in split_rows:
        groups.setdefault(name, []).append(Bar(run, shares))
    return list(groups.items())


def _turned(table: Table) -> Table:
    """Return ``table`` transposed: a row for each of its columns, with the shares of its rows as columns.

    A column that is n/a in every row is dropped.
    """
    known = [
        i for i in range(len(table.columns)) if any(_estimate(cells[i]).value is not None for _, cells in table.rows)
    ]
    rows_by_name: dict[str, dict[str, Sequence[Cell]]] = {}
    for label, cells in table.rows:
        name, _, share = label.rpartition(" / ")
        rows_by_name.setdefault(name, {})[share] = cells
    shares = tuple(dict.fromkeys(share for cells_by_share in rows_by_name.values() for share in cells_by_share))
    rows = tuple(
        (
            f"{name}, {table.columns[i]}",
            tuple(cells_by_share[share][i] if share in cells_by_share else None for share in shares),
        )
        for name, cells_by_share in rows_by_name.items()
        for i in known
    )
    return replace(table, columns=shares, rows=rows, chart="stacked")


def _split_label(label: str) -> tuple[str, str]:
    run, _, name = label.rpartition(" / ")
    return (run, name) if run else (name, "")


def _estimate(cell: Cell) -> Estimate:
    if isinstance(cell, Estimate):
        return cell
    return Estimate(float(cell)) if isinstance(cell, int) else Estimate(None)
