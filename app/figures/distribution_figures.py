"""Figures of distributions: panels of horizontal bars of counts, and a sunburst of phrases by their words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from app.figures.figure_style import Ink, inches, ink, label, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BAR = 0.135
"""The height of a horizontal bar with its gap, in inches."""

_SMALLEST = 0.004
"""The smallest share that has a segment of its own in a sunburst; smaller ones of one parent are drawn together, pale."""

_HOLE = 0.16
"""The radius of a sunburst's hole, as a share of its radius."""

_LISTED = 20
"""The number of phrases that are listed beside a sunburst as wide as a page."""

_PALE = "#eeeeee"


@dataclass(frozen=True, slots=True)
class Panel:
    """Horizontal bars under a heading: the name of each bar, and its counts by segment."""

    heading: str
    bars: Sequence[tuple[str, Sequence[int]]]


def count_panels(panels: Sequence[Panel], segments: Sequence[str], *, title: str, width: str) -> Figure:
    """Draw panels of bars with their totals, side by side on a page, else below each other (CLASH's Figures 2 and 4).

    A bar has a segment for each of ``segments``. With one segment, a bar's share of its panel is written beside its count.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    width_inches = inches(width)
    beside = width_inches > 5
    lines = [max(1, len(panel.bars)) for panel in panels]
    # A panel's heading takes about 0.25 inches, title and legend 0.45.
    height = 0.45 + (0.25 + _BAR * max(lines) if beside else sum(0.25 + _BAR * line for line in lines))
    with styled():
        figure = Figure(figsize=(width_inches, height))
        shape = (1, len(panels)) if beside else (len(panels), 1)
        grid = figure.subplots(*shape, squeeze=False, height_ratios=[1] if beside else lines)
        room = 26 if beside and len(panels) > 1 else 34
        for axes, panel in zip(grid.flat, panels, strict=True):
            _draw_panel(axes, panel, len(segments) == 1, room)
        if len(segments) > 1:
            handles = [_patch(Patch, name, ink(3 * number)) for number, name in enumerate(segments)]
            figure.legend(handles=handles, loc="outside lower center", ncols=len(segments), handlelength=1.4)
        figure.suptitle(label(title, 110 if beside else 54))
    return figure


def sunburst(phrases: Mapping[str, int], *, title: str, width: str) -> Figure:
    """Draw how often each phrase occurs, as rings of its first, second ... words from the inside out (CLASH's Figure 2).

    Segments run clockwise from the top in order of their counts. On a page, the most frequent phrases are listed beside.
    """
    from matplotlib.figure import Figure

    width_inches = inches(width)
    root = _Word("")
    for phrase, count in phrases.items():
        root.add(phrase.split(), count)
    rings = max((len(phrase.split()) for phrase in phrases), default=1)
    listed = width_inches > 5
    size = min(width_inches, 4.4)
    with styled():
        figure = Figure(figsize=(width_inches, size + 0.25))
        grid = figure.subplots(
            1, 2 if listed else 1, squeeze=False, width_ratios=[size, width_inches - size][: 1 + listed]
        )
        axes = grid[0, 0]
        axes.set_aspect("equal")
        axes.set_axis_off()
        axes.set_xlim(-1.01, 1.01)
        axes.set_ylim(-1.01, 1.01)
        # The share of a ring's thickness in points, of which a character of the labels takes about 2.9.
        thickness = (1 - _HOLE) / rings
        room = int(thickness * 0.96 * size / 2 * 72 / 2.9)
        _draw_ring(axes, root, 0.0, root.count, None, _HOLE, thickness, room)
        axes.text(0, 0, f"{root.count:,}", ha="center", va="center", fontsize=6.5)
        if listed:
            top = sorted(phrases.items(), key=lambda item: (-item[1], item[0]))[:_LISTED]
            _draw_panel(
                grid[0, 1], Panel(f"the {len(top)} most frequent", [(name, [n]) for name, n in top]), root.count
            )
        figure.suptitle(label(title, 110 if listed else 54))
    return figure


@dataclass(slots=True)
class _Word:
    """A word with the number of phrases that have it here, and the words that follow.

    ``legible`` is False if there is no room for it: the words that follow are then not written either.
    """

    name: str
    count: int = 0
    legible: bool = True
    following: dict[str, _Word] = field(default_factory=dict)

    def add(self, words: Sequence[str], count: int) -> None:
        self.count += count
        if words:
            self.following.setdefault(words[0], _Word(words[0])).add(words[1:], count)


def _draw_panel(axes: Any, panel: Panel, share_of: int | bool, room: int = 26) -> None:
    """Draw a panel with names of ``room`` characters at most.

    ``share_of`` is the number that counts are shares of, True for the panel's total, False for none.
    """
    whole = sum(sum(counts) for _, counts in panel.bars) if share_of is True else share_of
    top = max([1, *(sum(counts) for _, counts in panel.bars)])
    for at, (_, counts) in enumerate(panel.bars):
        start = 0
        for number, count in enumerate(counts):
            kind = ink(3 * number)
            edge = kind.on if kind.hatch else "none"
            axes.barh(at, count, 0.76, left=start, color=kind.fill, hatch=kind.hatch, edgecolor=edge, linewidth=0)
            axes.barh(at, count, 0.76, left=start, color="none", edgecolor="black", linewidth=0.4)
            start += count
        text = f"{start:,} ({100 * start / whole:.0f}%)" if whole else f"{start:,}"
        axes.text(start + 0.015 * top, at, text, va="center", ha="left", fontsize=5.5)
    axes.set_yticks(range(len(panel.bars)), [label(name, room, 1) for name, _ in panel.bars], fontsize=6)
    axes.set_ylim(len(panel.bars) - 0.4, -0.6)
    axes.set_xlim(0, top * (1.3 if whole else 1.12))
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(label(panel.heading, 60, 1), fontsize=6.5, fontweight="bold", loc="left")


def _draw_ring(
    axes: Any, parent: _Word, start: float, total: int, kind: Ink | None, inner: float, thickness: float, room: int
) -> None:
    """Draw the words after ``parent`` from the share ``start`` of the circle, each with what follows it."""
    from matplotlib.patches import Wedge

    small = 0
    for number, word in enumerate(sorted(parent.following.values(), key=lambda word: (-word.count, word.name))):
        if word.count < _SMALLEST * total:
            small += word.count
            continue
        word_ink = kind or ink(number)
        extent = word.count / total
        fill, on = _shade(word_ink, round((inner - _HOLE) / thickness))
        axes.add_patch(_wedge(Wedge, start, extent, inner, thickness, fill))
        # Type of 5.2 points is about 0.075 inches high, and the chart's radius about 2.1 or 1.6 inches.
        middle = inner + thickness / 2
        word.legible = parent.legible and 2 * math.pi * middle * extent > 0.05
        if word.legible:
            _write(axes, word.name, start + extent / 2, middle, on, room)
        _draw_ring(axes, word, start, total, word_ink, inner + thickness, thickness, room)
        start += extent
    if small:
        axes.add_patch(_wedge(Wedge, start, small / total, inner, thickness, _PALE))


def _wedge(kind: Any, start: float, extent: float, inner: float, thickness: float, fill: str) -> Any:
    """Return a segment of a ring; shares of the circle run clockwise from the top."""
    first, last = 90 - 360 * (start + extent), 90 - 360 * start
    return kind(
        (0, 0), inner + thickness, first, last, width=thickness, facecolor=fill, edgecolor="white", linewidth=0.4
    )


def _write(axes: Any, text: str, share: float, radius: float, colour: str, room: int) -> None:
    angle = 90 - 360 * share
    turn = angle if math.cos(math.radians(angle)) >= -1e-9 else angle + 180
    x, y = radius * math.cos(math.radians(angle)), radius * math.sin(math.radians(angle))
    axes.text(
        x,
        y,
        label(text, room, 1),
        rotation=turn,
        rotation_mode="anchor",
        ha="center",
        va="center",
        color=colour,
        fontsize=5.2,
    )


def _shade(kind: Ink, ring: int) -> tuple[str, str]:
    """Return the fill of an ink in a ring, lighter towards the outside, and the colour of text on it."""
    white = min(0.75, 0.3 * ring)
    channels = [int(kind.fill[i : i + 2], 16) for i in (1, 3, 5)]
    mixed = [round(channel + (255 - channel) * white) for channel in channels]
    dark = sum(weight * channel for weight, channel in zip((0.3, 0.59, 0.11), mixed, strict=True)) < 140
    return "#" + "".join(f"{channel:02x}" for channel in mixed), "#ffffff" if dark else "#000000"


def _patch(kind: Any, name: str, filled: Ink) -> Any:
    return kind(facecolor=filled.fill, hatch=filled.hatch, edgecolor="black", linewidth=0.4, label=label(name, 26))
