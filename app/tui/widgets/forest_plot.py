"""Forest plot: differences with their intervals around a line at zero, drawn with characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from app.report.tables.table_rendering import points, points_interval
from app.tui.hostile_text import sanitize
from app.tui.theme import DIM
from benchmarks.vocabulary import Estimate

_LIMITS = (1, 2, 5, 10, 20, 30, 40, 50, 60, 80, 100)
"""The ends of the axis to choose from, in percentage points."""
_MAX_LABEL = 24
_LEAST_PLOT = 11
_VALUE, _INTERVAL = 6, 17
"""The widths of ``-100.0`` and of `` [-100.0, +100.0]``."""


class ForestRow(NamedTuple):
    """A difference of shares; above 0 is better. ``label`` may be hostile."""

    label: str
    difference: Estimate


class Direction(NamedTuple):
    """The appearance of a row by where its interval lies."""

    glyph: str
    point: str
    style: str


BETTER, WORSE = Direction("▲", "●", "bold"), Direction("▼", "●", "bold")
UNDECIDED = Direction(" ", "○", "")


def direction(difference: Estimate) -> Direction:
    """Return better or worse if the interval excludes 0, else undecided."""
    if difference.low is None or difference.high is None:
        return UNDECIDED
    return BETTER if difference.low > 0 else WORSE if difference.high < 0 else UNDECIDED


def forest_plot(rows: Sequence[ForestRow], width: int) -> list[Content]:
    """Return the plot in lines of at most ``width`` cells: the axis in percentage points, then a line for each row.

    A glyph and bold type mark the intervals that exclude 0, as colours are those of labels. Without room for the plot, values
    and intervals are left.
    """
    if not rows:
        return []
    labels = [sanitize(row.label) for row in rows]
    label_width = max(1, min(max(map(cell_len, labels)), _MAX_LABEL, width - _VALUE - _INTERVAL - 4))
    plot_width = width - label_width - _VALUE - _INTERVAL - 6
    plot_width -= 1 - plot_width % 2  # odd, so that zero is in the middle
    limit = _limit(rows)
    lines = []
    if plot_width >= _LEAST_PLOT:
        lines.append(Content(" " * (label_width + 4)) + _axis(limit, plot_width))
    for row, label in zip(rows, labels, strict=True):
        appearance = direction(row.difference)
        parts = [Content.styled(f"{appearance.glyph} ", appearance.style), Content(set_cell_size(label, label_width))]
        if plot_width >= _LEAST_PLOT:
            parts += [Content("  "), _interval_line(row.difference, limit, plot_width)]
        parts += [Content("  "), _numbers(row.difference)]
        lines.append(Content("").join(parts).truncate(width))
    return lines


def _limit(rows: Sequence[ForestRow]) -> float:
    """Return the end of the axis: the smallest that no interval passes, as a share."""
    ends = [
        abs(end) for _, estimate in rows for end in (estimate.value, estimate.low, estimate.high) if end is not None
    ]
    largest = 100 * max(ends, default=0.0)
    return next((limit for limit in _LIMITS if limit >= largest - 1e-9), _LIMITS[-1]) / 100


def _axis(limit: float, width: int) -> Content:
    """Return the ends of the axis, zero, and the meaning of both directions."""
    half = width // 2
    left, right = f"-{100 * limit:g}", f"+{100 * limit:g}"
    if half >= len(right) + len(" better ") + 1:
        left, right = f"{left} worse", f"better {right}"
    return Content.styled(f"{left:<{half}}0{right:>{half}}", DIM)


def _interval_line(estimate: Estimate, limit: float, width: int) -> Content:
    """Return the point and its interval on a line of ``width`` cells, with zero in the middle."""
    middle = width // 2

    def place(share: float) -> int:
        return middle + round(max(-1.0, min(1.0, share / limit)) * middle)

    cells = [" "] * width
    cells[middle] = "│"
    if estimate.value is None:
        return Content.styled("".join(cells), DIM)
    if estimate.low is not None and estimate.high is not None:
        low, high = place(estimate.low), place(estimate.high)
        for cell in range(low, high + 1):
            cells[cell] = "┼" if cell == middle else "─"
        if low < high:
            cells[low], cells[high] = ("├", "┤")
    appearance = direction(estimate)
    point = place(estimate.value)
    parts = [
        Content.styled("".join(cells[:point]), appearance.style or DIM),
        Content.styled(appearance.point, appearance.style),
        Content.styled("".join(cells[point + 1 :]), appearance.style or DIM),
    ]
    return Content("").join(parts)


def _numbers(estimate: Estimate) -> Content:
    """Return the value and its interval in percentage points."""
    value, interval = points(estimate.value), points_interval(estimate)
    return Content.styled(f"{value:>{_VALUE}}", direction(estimate).style if estimate.value is not None else DIM) + (
        Content.styled(f" {interval}", DIM) if interval else Content("")
    )


class ForestPlot(Widget):
    """A forest plot as wide as its container, set by :meth:`show`."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: tuple[ForestRow, ...] = ()

    def show(self, rows: Sequence[ForestRow]) -> None:
        """Show these rows."""
        self._rows = tuple(rows)
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(forest_plot(self._rows, width))

    def render(self) -> Content:
        return Content("\n").join(forest_plot(self._rows, self.size.width))
