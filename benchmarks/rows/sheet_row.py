"""A row of a spreadsheet as its file holds it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

Cell = str | bool


class RefusedError(Exception):
    """A reason to refuse a workbook, as the rest of the sentence that begins with its name."""


@dataclass(slots=True)
class SheetRow:
    """The cells of a row as its owner sees them, from column A on; ``number`` is that of the spreadsheet.

    ``merged`` has, by column, the last row of each merged cell that begins here. ``hidden_columns`` are those of the sheet.
    """

    number: int
    cells: list[Cell]
    hidden: bool = False
    merged: dict[int, int] = field(default_factory=dict)
    hidden_columns: Collection[int] = ()
