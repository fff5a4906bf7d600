"""Figures of confidence: reliability diagram, and preference strength beside labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from app.figures.figure_style import MARKERS, inches, ink, label, styled
from benchmarks.vocabulary import Cell, Estimate, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROW = 0.17
"""The height of a condition of a run in a figure of preferences, in inches."""

_TICKS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
_LEAST = 1e-5
"""The distance from 0 and 1 at which confidences are drawn that are closer."""

_DARK = (0, 1, 2)
"""The inks that are legible as lines."""


def draw_reliability(table: Table, *, width: str) -> Figure | None:
    """Draw the share of right answers against confidence, a line for each run, with the diagonal of a calibrated model.

    A run with too few examples has no line, but stands in the legend; without any line there is no figure.
    """
    from matplotlib.figure import Figure

    lines: dict[str, list[tuple[float, Estimate]]] = {}
    counts: dict[str, int] = {}
    for name, (confidence, right, n) in table.rows:
        run = name.rpartition(" / ")[0]
        lines.setdefault(run, [])
        counts[run] = counts.get(run, 0) + (n if isinstance(n, int) else 0)
        if (x := _value(confidence)) is not None and isinstance(right, Estimate) and right.value is not None:
            lines[run].append((x, right))
    if not any(lines.values()):
        return None
    side = min(inches(width), 4.2)
    with styled():
        figure = Figure(figsize=(side, side + 0.3 + 0.14 * len(lines)))
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color="#888888", linewidth=0.6, linestyle="--")
        for number, (run, points) in enumerate(lines.items()):
            if not points:
                axes.plot([], [], " ", label=f"{label(run, 30, 1)}: fewer than 30 examples")
                continue
            colour = ink(_DARK[number % len(_DARK)]).fill
            for x, right in points:
                if right.low is not None and right.high is not None:
                    axes.plot([x, x], [right.low, right.high], color=colour, linewidth=0.6, alpha=0.7)
            axes.plot(
                [x for x, _ in points],
                [right.value or 0.0 for _, right in points],
                color=colour,
                marker=MARKERS[number % len(MARKERS)],
                markersize=4,
                linewidth=0.9,
                label=f"{label(run, 30, 1)} ({counts[run]:,} answers)",
            )
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_aspect("equal")
        axes.set_xlabel("confidence")
        axes.set_ylabel("share of right answers")
        figure.legend(loc="outside lower center", handlelength=1.6)
        figure.suptitle(label(table.title, 54))
    return figure


def draw_confidence(table: Table, *, width: str) -> Figure | None:
    """Draw each run's mean confidence under each condition, on a scale of log-odds, which tells 99% from 99.9%."""
    from matplotlib.figure import Figure

    rows = [(name, [_ends(cell) for cell in cells]) for name, cells in table.rows]
    if not any(known for _, values in rows for known in values):
        return None
    step = min(0.18, 0.7 / len(rows))
    with styled():
        figure = Figure(figsize=(inches(width), 2.3 + 0.12 * len(rows)))
        axes = figure.subplots()
        for number, (run, values) in enumerate(rows):
            colour = ink(_DARK[number % len(_DARK)]).fill
            points = [
                (place + (number - (len(rows) - 1) / 2) * step, value)
                for place, value in enumerate(values)
                if value is not None
            ]
            for x, (_, low, high) in points:
                axes.plot([x, x], [low, high], color=colour, linewidth=0.9)
            axes.plot(
                [x for x, _ in points],
                [middle for _, (middle, _, _) in points],
                MARKERS[number % len(MARKERS)],
                color=colour,
                markersize=4,
                label=label(run, 30, 1),
            )
        axes.set_yscale("logit")
        low = min(value[1] for _, values in rows for value in values if value is not None)
        ticks = [tick for tick in _TICKS if tick >= low / 10] or list(_TICKS)
        axes.set_yticks(ticks, [f"{100 * tick:g}%" for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(max(_LEAST, min(low * 0.9, 0.45)), 1 - _LEAST / 2)
        axes.set_xlim(-0.5, len(table.columns) - 0.5)
        axes.set_xticks(range(len(table.columns)), [label(name, 14) for name in table.columns])
        axes.set_ylabel("mean confidence")
        figure.legend(loc="outside lower center", ncols=2, handlelength=1.4)
        figure.suptitle(label(table.title, 54))
    return figure


def _ends(cell: Cell) -> tuple[float, float, float] | None:
    """Return a confidence and the ends of its interval, within the scale; None where there is none."""
    if not isinstance(cell, Estimate) or cell.value is None:
        return None
    ends = (cell.value, cell.value if cell.low is None else cell.low, cell.value if cell.high is None else cell.high)
    middle, low, high = (min(1 - _LEAST, max(_LEAST, value)) for value in ends)
    return middle, low, high


def draw_preference(table: Table, *, width: str) -> Figure | None:
    """Draw each condition's log-odds of image against text, and beside them the shares of the labels."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    names = [column for column in table.columns if column.startswith("labelled ")]
    rows = [(name.rpartition(" / "), cells) for name, cells in table.rows if _value(cells[0]) is not None]
    if not rows:
        return None
    runs = list(dict.fromkeys(run for (run, _, _), _ in rows))
    conditions = list(dict.fromkeys(condition for (_, _, condition), _ in rows))
    step = 1 / (len(runs) + 0.6)
    places = [
        conditions.index(condition) + (runs.index(run) - (len(runs) - 1) / 2) * step for (run, _, condition), _ in rows
    ]
    width_inches = inches(width)
    with styled():
        height = 1.0 + _ROW * len(conditions) * (len(runs) + 0.6) + 0.13 * (len(runs) + len(names)) / 2
        figure = Figure(figsize=(width_inches, height))
        grid = figure.subplots(1, 2 if names else 1, sharey=True, squeeze=False)[0]
        odds = grid[0]
        odds.axvline(0, color="#888888", linewidth=0.6, linestyle="--")
        cells_of_run = [
            [(cells[0], place) for ((name, _, _), cells), place in zip(rows, places, strict=True) if name == run]
            for run in runs
        ]
        handles = [
            handle
            for number, (run, cells) in enumerate(zip(runs, cells_of_run, strict=True))
            for handle in _draw_odds(odds, number, run, cells)
        ]
        if names:
            handles += _draw_labels(grid[1], table, [cells for _, cells in rows], places, step, names)
            grid[1].set_xlim(0, 1)
            grid[1].xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            grid[1].set_xlabel("share of labels")
        odds.set_yticks(range(len(conditions)), [label(name, 16) for name in conditions])
        odds.set_ylim(len(conditions) - 0.4, -0.6)
        odds.set_xlabel("log-odds, image : text")
        figure.legend(handles=handles, loc="outside lower center", ncols=2, handlelength=1.4)
        figure.suptitle(label(table.title, 54 if width_inches < 5 else 110))
    return figure


def _draw_odds(axes: Any, number: int, run: str, cells: Sequence[tuple[Cell, float]]) -> list[Any]:
    """Draw a run's log-odds, each at its place, with their intervals; return the legend's handles."""
    colour = ink(_DARK[number % len(_DARK)]).fill
    for cell, place in cells:
        if isinstance(cell, Estimate) and cell.low is not None and cell.high is not None:
            axes.plot([cell.low, cell.high], [place, place], color=colour, linewidth=0.9)
    handles: list[Any] = axes.plot(
        [_value(cell) for cell, _ in cells],
        [place for _, place in cells],
        MARKERS[number % len(MARKERS)],
        color=colour,
        markersize=4,
        label=label(run, 34, 1),
    )
    return handles


def _draw_labels(
    axes: Any, table: Table, rows: Sequence[Sequence[Cell]], places: Sequence[float], step: float, names: Sequence[str]
) -> list[Any]:
    """Draw the shares of labels as bars, one after the other; return the legend's handles."""
    handles = []
    starts = [0.0] * len(rows)
    for number, name in enumerate(names):
        kind = ink(3 + number)
        shares = [_value(cells[table.columns.index(name)]) or 0.0 for cells in rows]
        handles.append(
            axes.barh(
                places,
                shares,
                step * 0.85,
                left=starts,
                color=kind.fill,
                hatch=kind.hatch,
                edgecolor="black",
                linewidth=0.4,
                label=name,
            )
        )
        starts = [start + share for start, share in zip(starts, shares, strict=True)]
    return handles


def _value(cell: Cell) -> float | None:
    return cell.value if isinstance(cell, Estimate) else None
