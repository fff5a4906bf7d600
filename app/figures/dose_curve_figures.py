"""Figure of psychometric curves: the share of answers that follow the image by the dose of a factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from app.figures.figure_style import MARKERS, inches, ink, label, styled
from benchmarks.factors.factor_levels import KINDS, dose_of
from benchmarks.factors.factor_tables import FITTED
from benchmarks.factors.varied_run import READS_IMAGE
from benchmarks.vocabulary import Cell, Estimate, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STEPS = 200
_MOST_SERIES = 6
"""The most curves of a panel; further ones, which restrict other factors, are in the table."""


@dataclass
class _Curve:
    """The points of a series, and the fitted shares at its doses; ``read`` are the shares read with the image alone."""

    name: str
    doses: list[float] = field(default_factory=list)
    shares: list[Estimate] = field(default_factory=list)
    fitted: list[float | None] = field(default_factory=list)
    read: list[float | None] = field(default_factory=list)


def draw_curves(table: Table, *, width: str) -> Figure | None:
    """Draw the first column of a table of curves, a panel for each factor; None if there is nothing to draw."""
    from matplotlib.figure import Figure

    panels = _panels(table)
    if not panels:
        return None
    with styled():
        figure = Figure(figsize=(inches(width), 2.5 * len(panels)))
        all_axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
        for axes, (factor, curves) in zip(all_axes, panels.items(), strict=True):
            kind = KINDS[factor]
            if FITTED in table.columns:
                axes.axhline(0.5, color="black", linewidth=0.5, linestyle=":")
            for number, drawn in enumerate(curves[:_MOST_SERIES]):
                _draw(axes, drawn, number, is_log=kind.is_log)
            if kind.is_log:
                axes.set_xscale("log", base=2)
                doses = sorted({dose for drawn in curves for dose in drawn.doses})
                axes.set_xticks(doses, [f"{dose:g}" for dose in doses])
            axes.set_ylim(0, 1)
            axes.set_xlabel(f"{factor}, {kind.unit}" if kind.unit else factor)
            axes.set_ylabel(table.columns[0])
            axes.legend(fontsize=6)
        return figure


def _panels(table: Table) -> dict[str, list[_Curve]]:
    """Return the curves of each factor; those over all cells before those at a level of another factor."""
    curves: dict[str, _Curve] = {}
    panels: dict[str, list[_Curve]] = {}
    fitted_at, read_at = (
        table.columns.index(name) if name in table.columns else None for name in (FITTED, READS_IMAGE)
    )
    for row, cells in table.rows:
        series, _, level = row.rpartition(" / ")
        run, _, name = series.rpartition(" / ")
        factor, comma, _ = name.partition(", ")
        dose = dose_of(level)
        if dose is None or factor not in KINDS or _value(cells[0]) is None:
            continue
        if series not in curves:
            curves[series] = _Curve(run if not comma else f"{run}, {name.partition(', ')[2]}")
            panels.setdefault(factor, []).append(curves[series])
        drawn, share = curves[series], cells[0]
        assert isinstance(share, Estimate)
        drawn.doses.append(dose)
        drawn.shares.append(share)
        drawn.fitted.append(None if fitted_at is None else _value(cells[fitted_at]))
        if read_at:
            drawn.read.append(_value(cells[read_at]))
    return {factor: sorted(items, key=lambda item: ", " in item.name) for factor, items in panels.items()}


def _draw(axes: Any, drawn: _Curve, number: int, *, is_log: bool) -> None:
    colour, values = ink(number % 4).fill, [_value(share) or 0.0 for share in drawn.shares]
    below = [value - (value if e.low is None else e.low) for value, e in zip(values, drawn.shares, strict=True)]
    above = [(value if e.high is None else e.high) - value for value, e in zip(values, drawn.shares, strict=True)]
    smooth = _smooth(drawn, is_log=is_log)
    axes.errorbar(
        drawn.doses,
        values,
        yerr=[below, above],
        color=colour,
        marker=MARKERS[number % len(MARKERS)],
        markersize=4,
        elinewidth=0.7,
        linewidth=0.9,
        linestyle="none" if smooth else "solid",
        clip_on=False,
        label=label(drawn.name, 40, 1) + _equality(smooth),
    )
    if smooth:
        axes.plot(*zip(*smooth, strict=True), color=colour, linewidth=0.9)
    known = [(dose, share) for dose, share in zip(drawn.doses, drawn.read, strict=False) if share is not None]
    if known:
        axes.plot(
            *zip(*sorted(known), strict=True),
            color=colour,
            linewidth=0.6,
            linestyle="--",
            label=f"{label(drawn.name, 40, 1)}: {READS_IMAGE}",
        )


def _smooth(drawn: _Curve, *, is_log: bool) -> Sequence[tuple[float, float]]:
    """Return points of the logistic curve through the fitted shares, which is a line in log odds; empty without a fit."""
    known = sorted(
        (math.log2(dose) if is_log else dose, math.log(share / (1 - share)))
        for dose, share in zip(drawn.doses, drawn.fitted, strict=True)
        if share is not None and 1e-9 < share < 1 - 1e-9
    )
    if len(known) < 2:
        return []
    (x0, y0), (x1, y1) = known[0], known[-1]
    slope = (y1 - y0) / (x1 - x0)
    doses = sorted(math.log2(dose) if is_log else dose for dose in drawn.doses)
    points = []
    for step in range(_STEPS + 1):
        x = doses[0] + (doses[-1] - doses[0]) * step / _STEPS
        points.append((2**x if is_log else x, 1 / (1 + math.exp(-(y0 + slope * (x - x0))))))
    return points


def _equality(smooth: Sequence[tuple[float, float]]) -> str:
    """Return the dose at which a curve is one half, for the legend; empty where it is nowhere."""
    for (x0, y0), (x1, y1) in pairwise(smooth):
        if y0 != y1 and min(y0, y1) <= 0.5 <= max(y0, y1):
            return f", PSE {x0 + (0.5 - y0) / (y1 - y0) * (x1 - x0):.3g}"
    return ""


def _value(cell: Cell) -> float | None:
    return cell.value if isinstance(cell, Estimate) else None
