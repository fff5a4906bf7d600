"""Truncation of text to a number of terminal cells, at the end or in the middle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip


def fit(parts: Sequence[tuple[str, Style]], width: int, right: bool, style: Style, tail: float) -> list[Segment]:
    """Return ``parts`` padded or truncated to exactly ``width`` cells.

    A text that is too long gets an ellipsis; the part after it takes the share ``tail`` of the cells (0 omits the end).
    """
    used_width = sum(cell_len(text) for text, _ in parts)
    if used_width <= width:
        gap = [Segment(" " * (width - used_width), style)] if width > used_width else []
        segments = [Segment(text, part_style) for text, part_style in parts]
        return [*gap, *segments] if right else [*segments, *gap]
    tail_cells = int((width - 1) * tail)
    return [*_beginning(parts, width - 1 - tail_cells), Segment("…", style), *_end(parts, tail_cells)]


def _beginning(parts: Sequence[tuple[str, Style]], cells: int) -> Iterator[Segment]:
    for text, part_style in parts:
        if cells <= 0:
            return
        size = min(cells, cell_len(text))
        yield Segment(set_cell_size(text, size), part_style)
        cells -= size


def _end(parts: Sequence[tuple[str, Style]], cells: int) -> list[Segment]:
    segments: list[Segment] = []
    for text, part_style in reversed(parts):
        if cells <= 0:
            break
        size = min(cells, cell_len(text))
        segments.insert(0, Segment(_last_cells(text, size), part_style))
        cells -= size
    return segments


def _last_cells(text: str, cells: int) -> str:
    """Return the end of ``text`` in exactly ``cells`` cells; a space replaces half of a wide character."""
    rest = text
    while rest and (cell_len(rest) > cells or not cell_len(rest[0])):
        rest = rest[1:]
    return " " * (cells - cell_len(rest)) + rest


def elide_middle(text: str, limit: int) -> str:
    """Return ``text``, without its middle if it has more than ``limit`` characters."""
    half_width = limit // 2
    return text if len(text) <= limit else f"{text[:half_width]}…{text[-half_width:]}"


def trailing_style(line: Strip, base: Style) -> Style:
    """Return the style in which a line continues past its end."""
    segments = list(line)
    return (segments[-1].style or base) if segments else base
