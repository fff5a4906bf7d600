"""Text in so many cells of a terminal: cut at its end, or in the middle where the end is what tells names apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style


def fitted(parts: Sequence[tuple[str, Style]], width: int, right: bool, style: Style, end: float) -> list[Segment]:
    """``parts`` in exactly ``width`` cells; what is too long has an ellipsis, behind which its ``end`` has that share of them."""
    used = sum(cell_len(text) for text, _ in parts)
    if used <= width:
        gap = [Segment(" " * (width - used), style)] if width > used else []
        told = [Segment(text, own) for text, own in parts]
        return [*gap, *told] if right else [*told, *gap]
    tail = int((width - 1) * end)
    return [*_beginning(parts, width - 1 - tail), Segment("…", style), *_end(parts, tail)]


def _beginning(parts: Sequence[tuple[str, Style]], cells: int) -> Iterator[Segment]:
    for text, own in parts:
        if cells <= 0:
            return
        size = min(cells, cell_len(text))
        yield Segment(set_cell_size(text, size), own)
        cells -= size


def _end(parts: Sequence[tuple[str, Style]], cells: int) -> list[Segment]:
    told: list[Segment] = []
    for text, own in reversed(parts):
        if cells <= 0:
            break
        size = min(cells, cell_len(text))
        told.insert(0, Segment(_last_cells(text, size), own))
        cells -= size
    return told


def _last_cells(text: str, cells: int) -> str:
    """The end of ``text`` in exactly ``cells``: a space stands for half of a wide character."""
    kept = text
    while kept and (cell_len(kept) > cells or not cell_len(kept[0])):
        kept = kept[1:]
    return " " * (cells - cell_len(kept)) + kept


def ends(text: str, most: int) -> str:
    """``text``, of which the middle is left out where it has more than ``most`` characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"
