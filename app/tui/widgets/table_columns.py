"""Columns of a table: how wide they are, and what of their cells is visible."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from rich.cells import cell_len
from textual.strip import Strip

from app.text.text_elision import elide_shared
from app.tui.hostile_text import sanitize
from app.tui.widgets.truncate_text import elide_middle

_MAX_MEASURED = 300
"""The number of characters of a cell that are measured; more than a terminal is wide."""
_MAX_COMPARED = 600
"""The number of characters of a cell in a distinct column; an ellipsis stands for the rest."""
Cell = str | Sequence[tuple[str, str]]
"""A text, or pairs of text and style, which may name variables of the styles: ``bold $right``."""
Row = Sequence[Cell]
"""The cells of a row. If there are fewer than columns and no column is frozen, the last cell extends to the edge."""


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        title: The title in the header.
        width: The width in cells; 0 takes a share of the remaining cells, from ``min_width`` to ``max_width``.
        style: The style of the column, as in a cell.
        right: Aligned to the right.
        tail: The share of the width for the end of a text that is too long; 0 omits the end. For names that differ there.
        distinct: Texts that are too long lose what they share with others of their page, not what sets them apart.
        max_width: The most cells that a share may have; 0 for any number.
    """

    title: str
    width: int
    style: str = ""
    right: bool = False
    min_width: int = 8
    tail: float = 0.0
    max_width: int = 0
    distinct: bool = False


def fit_to_contents(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[Column, ...]:
    """Return ``columns``, those of width 0 with a ``max_width`` for the widest of their cells and a gap.

    Cells that extend over several columns do not count.
    """

    def widest(number: int) -> int:
        cells = [row[number] for row in rows if number < len(row) - 1 or len(row) == len(columns)]
        return max([cell_len(columns[number].title), *map(_cell_width, cells)])

    return tuple(
        column if column.width else column._replace(max_width=widest(number) + 1)
        for number, column in enumerate(columns)
    )


def _cell_width(cell: Cell) -> int:
    texts = [cell] if isinstance(cell, str) else [text for text, _ in cell]
    return sum(cell_len(sanitize(text, limit=_MAX_MEASURED)) for text in texts)


def visible_text(text: str, column: Column, width: int) -> str:
    """Return a cell's text, sanitized, shortened to what can be visible in ``width`` cells."""
    limit = 4 * width
    return sanitize(elide_middle(text, limit)) if column.tail else sanitize(text, limit=limit)


def distinct_texts(columns: Sequence[Column], widths: Sequence[int], rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows with the texts of the distinct columns as displayed."""
    numbers = [number for number, column in enumerate(columns) if column.distinct]
    if not numbers:
        return rows
    fitted = [list(row) for row in rows]
    for number in numbers:
        cells = {place: row[number] for place, row in enumerate(fitted) if number < len(row)}
        texts = {place: sanitize(cell[:_MAX_COMPARED]) for place, cell in cells.items() if isinstance(cell, str)}
        for place, text in zip(texts, elide_shared([*texts.values()], widths[number]), strict=True):
            fitted[place][number] = text
    return fitted


class ColumnLayout:
    """The columns as they are placed on a line of ``room`` cells: a cell for the mark, then each with a space after it.

    Attributes:
        widths: The width of each column.
        full_width: The width of a line.
        frozen_width: The width of the frozen columns.
    """

    def __init__(self, columns: Sequence[Column], frozen: int, room: int) -> None:
        self._columns, self._frozen, self._room = columns, frozen, room
        self.widths = _column_widths(columns, room)
        self.full_width = sum(self.widths) + max(0, len(columns) - 1) + 1
        self.frozen_width = sum(width + 1 for width in self.widths[:frozen])

    @property
    def ends(self) -> list[int]:
        """The end of each column that scrolls, from the end of the frozen ones."""
        return [*accumulate(width + 1 for width in self.widths[self._frozen :])]

    @property
    def starts(self) -> list[int]:
        """The scroll offsets at which a titled column comes right after the frozen ones."""
        starts: list[int] = []
        for column, start in zip(self._columns[self._frozen :], [0, *self.ends], strict=False):
            if column.title or not starts:
                starts.append(start)
        return starts

    def hidden(self, offset: int) -> tuple[int, int]:
        """Return how many columns are beyond the left and the right edge at a scroll offset."""
        starts = self.starts
        ends = [*starts[1:], self.full_width - self.frozen_width]
        return sum(start < offset for start in starts), sum(
            end > offset + self._room - self.frozen_width for end in ends
        )

    def crop(self, line: Strip, offset: int) -> Strip:
        """Return the frozen columns of a line, and the others from a scroll offset on.

        A column that the right edge would cut is left out, as part of a number is another number.
        """
        frozen = 1 + self.frozen_width
        room = self._room - frozen
        whole = [end for end in self.ends if offset < end <= offset + room + 1]
        scrolled = line.crop(frozen + offset, frozen + max(whole, default=offset + room))
        return Strip.join([line.crop(0, frozen), scrolled])

    def column_at(self, x: int, offset: int) -> int | None:
        """Return the number of the column that is displayed at ``x``; None beyond the last."""
        start = 1
        for number, width in enumerate(self.widths):
            if number == self._frozen and x >= start:
                x += offset
            if x <= start + width:
                return number
            start += width + 1
        return None


def _column_widths(columns: Sequence[Column], room: int) -> list[int]:
    widths = [column.width for column in columns]
    flexible = [number for number, column in enumerate(columns) if column.width == 0]
    flexible.sort(key=lambda number: columns[number].max_width or sys.maxsize)  # others share what these leave
    room -= sum(widths) + max(0, len(columns) - 1) + 1
    for place, number in enumerate(flexible):
        column, share = columns[number], room // (len(flexible) - place)
        widths[number] = max(column.min_width, min(share, column.max_width or share))
        room -= widths[number]
    return widths
