"""Parts that figures share: sizes, labels, legends, axes in percent, and whiskers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from app.figures.figure_style import ink, label
from benchmarks.vocabulary import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = float | None


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def whisker(axes: Any, x: float, value: Estimate) -> None:
    """Draw a value's interval, or one standard deviation if only that is known."""
    assert value.value is not None
    low, high = value.low, value.high
    if (low is None or high is None) and value.sd is not None:
        low, high = value.value - value.sd, value.value + value.sd
    if low is None or high is None:
        return
    # A light line under a dark one is visible on any ink.
    for colour, line in (("white", 1.6), ("black", 0.6)):
        axes.plot([x, x], [low, high], color=colour, linewidth=line, solid_capstyle="butt", zorder=3)


def percent_axis(axis: Any) -> None:
    """Write an axis of shares in whole percent."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def patches(names: Sequence[str]) -> list[Any]:
    """Return the legend's handles for the inks, one for each of ``names``."""
    from matplotlib.patches import Patch

    return [
        Patch(facecolor=kind.fill, hatch=kind.hatch, edgecolor="black", linewidth=0.4, label=label(name, 26))
        for name, kind in ((name, ink(number)) for number, name in enumerate(names))
    ]


def legend(figure: Figure, handles: Sequence[Any], wide: float) -> None:
    """Draw a legend below a figure, in as few lines as its width allows."""
    if handles:
        # A character takes about 0.06 inches, a handle with its space as much as five of them.
        longest = max(len(line) for handle in handles for line in handle.get_label().splitlines() or [""])
        lines = -(-len(handles) // max(1, int(wide / (0.06 * (longest + 5)))))
        columns = -(-len(handles) // lines)
        figure.legend(handles=handles, loc="outside lower center", ncols=columns, handlelength=1.4, columnspacing=1.0)


def label_columns(axes: Any, names: Sequence[str], wide: float) -> None:
    """Label the columns, with rotated names if a word is wider than its column."""
    room = int(0.85 * wide / 0.05 / max(1, len(names)))
    turned = any(len(word) > room for name in names for word in name.split())
    labels = [label(name, 24 if turned else max(1, room)) for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=30 if turned else 0, ha="right" if turned else "center")
    axes.tick_params(axis="x", length=0)


def label_room(wide: float) -> int:
    """Return how many characters of a row's name have room."""
    return 22 if wide < 5 else 40


def figure_title(title: str, wide: float) -> str:
    """Return a title, shortened to the width."""
    return label(title, 54 if wide < 5 else 110)
