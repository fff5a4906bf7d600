"""Kinds of figure: stacked bars, grouped bars, lines and points with their intervals, each as a matplotlib figure.

Values are fractions or counts; None is drawn as n/a, never as 0. ``width`` is a name of ``style.WIDTHS``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.figures.figure_parts import (
    Value,
    figure_title,
    label_columns,
    label_room,
    legend,
    new_figure,
    patches,
    percent_axis,
    whisker,
)
from app.figures.figure_style import MARKERS, Ink, inches, ink, label, styled
from benchmarks.vocabulary import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_BAR = 0.19
"""The height of a horizontal bar with its gap, in inches."""

_WRITTEN = 0.07
"""The smallest segment of a bar, as a share, that has its value written in it; for a column's width."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A horizontal bar of shares: its name and its segments, which sum to 1 at most."""

    name: str
    shares: Sequence[Value]


@dataclass(frozen=True, slots=True)
class Point:
    """A run in :func:`scatter`: ``x`` in the axis's unit, ``y`` with its interval."""

    name: str
    x: float
    y: Estimate


def stacked(groups: Sequence[tuple[str, Sequence[Bar]]], segments: Sequence[str], *, title: str, width: str) -> Figure:
    """Draw horizontal bars of shares in groups, each under its heading (CMC-Bench's Figure 3, CLASH's 6 and 7)."""
    width_inches = inches(width)
    headed = any(name for name, _ in groups)
    lines = sum(len(bars) + headed for _, bars in groups)
    with styled():
        # Title, scale and legend take about 0.9 inches.
        figure = new_figure(width_inches, 0.9 + _BAR * lines)
        axes = figure.subplots()
        at, ticks, names = 0.0, list[float](), list[str]()
        for heading, bars in groups:
            if headed:
                axes.text(0.0, at, label(heading, 60), va="center", ha="left", fontweight="bold", fontsize=6.5)
                at += 1
            for bar in bars:
                _stack(axes, at, bar.shares, width_inches)
                ticks.append(at)
                names.append(label(bar.name, label_room(width_inches)))
                at += 1
        axes.set_yticks(ticks, names, fontsize=6, linespacing=0.9)
        axes.set_ylim(at - 0.4, -0.6)
        axes.set_xlim(0, 1)
        percent_axis(axes.xaxis)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        legend(figure, patches(segments), width_inches)
        figure.suptitle(figure_title(title, width_inches))
    return figure


def bars(
    series: Sequence[tuple[str, Sequence[Estimate]]], categories: Sequence[str], *, title: str, width: str
) -> Figure:
    """Draw vertical bars, a group for each category with a bar for each series (CLASH's Figure 5).

    The whisker is the interval, or one standard deviation if only that is known.
    """
    width_inches = inches(width)
    room = 0.84 / max(1, len(series))
    with styled():
        figure = new_figure(width_inches, 2.0 + 0.12 * -(-len(series) // (2 if width_inches < 5 else 4)))
        axes = figure.subplots()
        for number, (_, values) in enumerate(series):
            kind = ink(number)
            places = [i + (number - (len(series) - 1) / 2) * room for i in range(len(values))]
            known = [(x, value) for x, value in zip(places, values, strict=True) if value.value is not None]
            axes.bar(
                [x for x, _ in known],
                [value.value or 0.0 for _, value in known],
                room * 0.92,
                color=kind.fill,
                hatch=kind.hatch,
                edgecolor=kind.on if kind.hatch else "black",
                linewidth=0.4,
            )
            for x, value in known:
                whisker(axes, x, value)
            for x in sorted(set(places) - {x for x, _ in known}):
                axes.text(x, 0.01, "n/a", rotation=90, ha="center", va="bottom", fontsize=5.5)
        label_columns(axes, categories, width_inches)
        estimates = [value for _, values in series for value in values]
        axes.set_ylim(_bottom(estimates), _top(estimates))
        percent_axis(axes.yaxis)
        legend(figure, patches([name for name, _ in series]), width_inches)
        figure.suptitle(figure_title(title, width_inches))
    return figure


def lines(
    series: Sequence[tuple[str, Sequence[Estimate]]], categories: Sequence[str], *, title: str, width: str
) -> Figure:
    """Draw each series as a line over the categories with its intervals; numbers stand where they are on a scale."""
    width_inches = inches(width)
    is_scale = all(name.isdigit() for name in categories)
    places = [float(name) for name in categories] if is_scale else [float(i) for i in range(len(categories))]
    with styled():
        figure = new_figure(width_inches, 2.1 + 0.12 * -(-len(series) // (2 if width_inches < 5 else 4)))
        axes = figure.subplots()
        span = (max(places, default=1) - min(places, default=0)) or 1.0
        for number, (name, values) in enumerate(series):
            shift = (number - (len(series) - 1) / 2) * 0.012 * span  # so that intervals do not hide each other
            known = [(x + shift, value) for x, value in zip(places, values, strict=True) if value.value is not None]
            for x, value in known:
                whisker(axes, x, value)
            axes.plot(
                [x for x, _ in known],
                [value.value or 0.0 for _, value in known],
                marker=MARKERS[number % len(MARKERS)],
                color=ink(number % 4).fill,
                markeredgecolor="black",
                markeredgewidth=0.5,
                markersize=4,
                linewidth=0.9,
                zorder=4,
                clip_on=False,
                label=label(name, 40),
            )
        axes.set_xticks(places, list(categories))
        axes.set_ylim(0, 1)
        axes.grid(axis="y", color="#dddddd", linewidth=0.4)
        axes.set_axisbelow(True)
        percent_axis(axes.yaxis)
        legend(figure, axes.get_legend_handles_labels()[0], width_inches)
        figure.suptitle(figure_title(title, width_inches))
    return figure


def scatter(points: Sequence[Point], *, x: str, y: str, title: str, width: str) -> Figure:
    """Draw each run as a marker with its interval: ``y`` against ``x``, such as quality against memory. n/a is skipped."""
    width_inches = inches(width)
    known = [(number, point) for number, point in enumerate(points) if point.y.value is not None]
    with styled():
        figure = new_figure(width_inches, 2.1 + 0.12 * -(-len(known) // (2 if width_inches < 5 else 4)))
        axes = figure.subplots()
        for number, point in known:
            assert point.y.value is not None
            whisker(axes, point.x, point.y)
            axes.plot(
                [point.x],
                [point.y.value],
                MARKERS[number % len(MARKERS)],
                color=ink(number).fill,
                markeredgecolor="black",
                markeredgewidth=0.5,
                markersize=5,
                linestyle="none",
                label=label(point.name, 26),
            )
        axes.set_xlim(0, 1.1 * max((point.x for _, point in known), default=1))
        axes.margins(y=0.15)  # not from 0, since quantisation costs little
        axes.grid(color="#dddddd", linewidth=0.4)
        axes.set_axisbelow(True)
        axes.set_xlabel(label(x, 50))
        axes.set_ylabel(label(y, 40))
        percent_axis(axes.yaxis)
        legend(figure, axes.get_legend_handles_labels()[0], width_inches)
        figure.suptitle(figure_title(title, width_inches))
    return figure


def intervals(rows: Sequence[tuple[str, Estimate]], *, x: str, title: str, width: str) -> Figure:
    """Draw a point with its interval for each name, the first on top, beside a line at 0; n/a is written as its reason."""
    width_inches = inches(width)
    with styled():
        figure = new_figure(width_inches, 0.9 + 0.26 * len(rows))
        axes = figure.subplots()
        axes.axvline(0, color="black", linewidth=0.5, linestyle=":")
        for y, (_, value) in enumerate(rows):
            if value.value is None:
                axes.text(0, y, f" {value.reason or 'n/a'}", va="center", fontsize=6)
                continue
            if value.low is not None and value.high is not None:
                axes.plot([value.low, value.high], [y, y], color="black", linewidth=0.7)
            axes.plot([value.value], [y], "o", color=ink(0).fill, markeredgecolor="black", markersize=4)
        names = [label(name, label_room(width_inches)) for name, _ in rows]
        axes.set_yticks(range(len(rows)), names, fontsize=6, linespacing=0.9)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(label(x, 50))
        axes.locator_params(axis="x", nbins=5)
        percent_axis(axes.xaxis)
        figure.suptitle(figure_title(title, width_inches))
    return figure


def risk_coverage(points: Sequence[tuple[str, Estimate, Estimate]], *, title: str, width: str) -> Figure:
    """Draw each run at its coverage and risk with both intervals; a run that answers nothing has no risk and is skipped.

    Rows named ``RUN / WHAT`` are one run at several thresholds, and joined by a line.
    """
    width_inches = inches(width)
    curves: dict[str, list[tuple[Estimate, Estimate]]] = {}
    for name, coverage, risk in points:
        if coverage.value is not None and risk.value is not None:
            curves.setdefault(name.partition(" / ")[0], []).append((coverage, risk))
    with styled():
        figure = new_figure(width_inches, 2.1 + 0.12 * -(-len(curves) // (2 if width_inches < 5 else 4)))
        axes = figure.subplots()
        for number, (name, values) in enumerate(curves.items()):
            places = sorted((coverage.value or 0.0, risk.value or 0.0) for coverage, risk in values)
            if len(values) == 1:
                (coverage, risk), ((x, y),) = values[0], places
                whisker(axes, x, risk)
                if coverage.low is not None and coverage.high is not None:
                    axes.plot([coverage.low, coverage.high], [y, y], color="black", linewidth=0.6)
            else:  # thin and dark, since the lightest ink is almost white
                axes.plot([x for x, _ in places], [y for _, y in places], color="#777777", linewidth=0.6, zorder=1)
            axes.plot(
                [x for x, _ in places],
                [y for _, y in places],
                MARKERS[number % len(MARKERS)],
                color=ink(number).fill,
                markeredgecolor="black",
                markeredgewidth=0.5,
                markersize=5 if len(values) == 1 else 3,
                linestyle="none",
                label=label(name, 26),
            )
        axes.set_xlim(0, 1.03)
        axes.set_ylim(-0.03, 1.03)
        axes.grid(color="#dddddd", linewidth=0.4)
        axes.set_axisbelow(True)
        axes.set_xlabel("coverage")
        axes.set_ylabel("risk")
        percent_axis(axes.xaxis)
        percent_axis(axes.yaxis)
        legend(figure, axes.get_legend_handles_labels()[0], width_inches)
        figure.suptitle(figure_title(title, width_inches))
    return figure


def _stack(axes: Any, at: float, shares: Sequence[Value], width: float) -> None:
    if all(share is None for share in shares):
        axes.text(0.01, at, "n/a", va="center", ha="left", fontsize=6)
        return
    start = 0.0
    for number, share in enumerate(shares):
        kind = ink(number)
        if share:
            _barh(axes, at, start, share, kind)
            if share >= _WRITTEN * (3.3 / width) ** 0.5:
                box = (
                    {"boxstyle": "square,pad=0.1", "facecolor": kind.fill, "edgecolor": "none"} if kind.hatch else None
                )
                axes.text(
                    start + share / 2,
                    at,
                    f"{100 * share:.0f}",
                    va="center",
                    ha="center",
                    color=kind.on,
                    fontsize=6,
                    bbox=box,
                )
            start += share


def _barh(axes: Any, at: float, start: float, share: float, kind: Ink) -> None:
    edge = kind.on if kind.hatch else "none"
    axes.barh(at, share, 0.78, left=start, color=kind.fill, hatch=kind.hatch, edgecolor=edge, linewidth=0)
    axes.barh(at, share, 0.78, left=start, color="none", edgecolor="black", linewidth=0.4)


def _top(values: Sequence[Estimate]) -> float:
    """Return the next tenth above all values, at most 1, so that small shares remain distinguishable."""
    highest = max((v for value in values for v in (value.value, value.high) if v is not None), default=1.0)
    return min(1.0, max(1, math.ceil(highest * 10)) / 10)


def _bottom(values: Sequence[Estimate]) -> float:
    """Return 0, or the next tenth below all values where one is negative, as differences are."""
    lowest = min((v for value in values for v in (value.value, value.low) if v is not None), default=0.0)
    return min(0.0, math.floor(lowest * 10) / 10)
