"""Heat maps, and matrices of flips."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from app.figures.figure_parts import Value, figure_title, label_columns, label_room, new_figure
from app.figures.figure_style import inches, label, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def heat(
    rows: Sequence[tuple[str, Sequence[Value]]],
    columns: Sequence[str],
    *,
    title: str,
    width: str,
    star: bool = False,
    counts: bool = False,
    across: str = "",
    down: str = "",
) -> Figure:
    """Draw a heat map with its values written in the cells (CrossCheck-Bench's Figure 5).

    Dark is high. ``star`` marks each column's best; ``counts`` writes whole numbers instead of percent; ``across`` and
    ``down`` are the titles of the columns and of the rows.
    """
    width_inches = inches(width)
    with styled():
        figure = new_figure(width_inches, 0.75 + 0.24 * len(rows) + (0.15 if across else 0))
        axes = figure.subplots()
        best = [
            max((v for _, values in rows if (v := values[i]) is not None), default=None) for i in range(len(columns))
        ]
        size = 6.5 if width_inches / max(1, len(columns)) > 0.35 else 5.2  # "100*" in its cell
        known = [value for _, values in rows for value in values if value is not None]
        top = max([1, *known]) if counts else 1.0
        for y, (_, values) in enumerate(rows):
            for x, value in enumerate(values):
                mark = "*" if star and value is not None and value == best[x] else ""
                _draw_cell(axes, x, y, value, top, mark, counts=counts, size=size)
        axes.set_xlim(-0.5, len(columns) - 0.5)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        label_columns(axes, columns, width_inches)
        axes.set_yticks(
            range(len(rows)), [label(name, label_room(width_inches)) for name, _ in rows], fontsize=6, linespacing=0.9
        )
        axes.tick_params(length=0)
        axes.set_xlabel(label(across, 60))
        axes.set_ylabel(label(down, 40))
        axes.spines[:].set_visible(False)
        figure.suptitle(figure_title(title if counts else f"{title}, %", width_inches))
    return figure


def flips(
    matrix: Sequence[Sequence[int]], labels: Sequence[str], *, before: str, after: str, title: str, width: str
) -> Figure:
    """Draw the numbers of instances by their label in the run ``before`` (rows) and in the run ``after`` (columns)."""
    rows = [(name, [float(count) for count in counts]) for name, counts in zip(labels, matrix, strict=True)]
    return heat(rows, labels, title=title, width=width, counts=True, across=after, down=before)


def _draw_cell(axes: Any, x: int, y: int, value: Value, top: float, mark: str, *, counts: bool, size: float) -> None:
    """Draw a cell with its value and its ``mark``; ``top`` is the darkest value."""
    from matplotlib.patches import Rectangle

    if value is None:
        share, fill, hatch, text = 0.0, "#ffffff", "////", "n/a"
    else:
        # The square root makes small counts visible next to large ones.
        share = (value / top) ** (0.5 if counts else 1)
        fill, hatch, text = _shades()(share), "", f"{value:.0f}" if counts else f"{100 * value:.0f}"
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=fill, hatch=hatch, edgecolor="#bbbbbb", linewidth=0.4))
    colour = "white" if share > 0.55 else "black"
    axes.text(x, y, f"{text}{mark}", ha="center", va="center", color=colour, fontsize=size)


@cache
def _shades() -> Any:
    """Return the colour of a share, from white to dark blue."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ink", ["#ffffff", "#4c96c8", "#14284b"])
