"""Rows of .ods workbooks, whose files hold the text that each cell displays."""

from __future__ import annotations

import re
import zipfile
from collections import deque
from collections.abc import Iterator
from typing import IO
from xml.parsers import expat

from benchmarks.rows.cell_answers import ERROR, NO_VALUE
from benchmarks.rows.number_formats import displayed_number, plain_number
from benchmarks.rows.sheet_row import Cell, RefusedError, SheetRow

_CHUNK = 1 << 18
_GROUPS = ("table:table-row-group", "table:table-column-group")
_MOST_COLUMNS = 16_384
_MOST_REPEATED = 20_000
"""The maximum number of equal rows that a file may write as one: a few letters would be a million rows."""
_FULL_DATE = re.compile(r"\s*\d{1,4}[-./]\s?\d{1,2}[-./]\s?\d{1,4}\s*")


def ods_rows(file: IO[bytes], sheet: str) -> Iterator[SheetRow]:
    """Yield the rows of a sheet, without empty ones; a row that the file repeats is yielded as often."""
    rows: deque[tuple[SheetRow, int]] = deque()
    reader = _Reader(sheet, rows)
    with zipfile.ZipFile(file) as archive, archive.open("content.xml") as stream:
        while data := stream.read(_CHUNK):
            reader.feed(data)
            while rows:
                row, times = rows.popleft()
                if times > _MOST_REPEATED:
                    raise RefusedError(
                        f"has row {row.number:,} {times:,} times; delete the equal rows, and save it again."
                    )
                for number in range(row.number, row.number + times):
                    yield SheetRow(number, list(row.cells), row.hidden, row.merged, row.hidden_columns)


class _Reader:
    """A parser of an .ods file's content, which appends the rows of one sheet to ``rows``, each with its repetitions."""

    def __init__(self, sheet: str, rows: deque[tuple[SheetRow, int]]) -> None:
        self._sheet, self._rows = sheet, rows
        self._inside = self._skipped = False
        self._next_number, self._next_column = 1, 0
        self._hidden_columns: set[int] = set()
        self._groups: list[bool] = []
        self._row: SheetRow | None = None
        self._times = 1
        self._cell: dict[str, str] | None = None
        self._text: list[str] = []
        self._paragraph = False
        parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.buffer_text = True
        self.feed = parser.Parse

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "table:table":
            self._inside = attributes.get("table:name") == self._sheet
        elif not self._inside or self._skipped:
            return
        elif name in _GROUPS:
            self._groups.append(attributes.get("table:display") == "false")
        elif name == "table:table-column":
            first = self._next_column
            self._next_column += min(int(attributes.get("table:number-columns-repeated", 1)), _MOST_COLUMNS)
            if self._is_hidden(attributes):
                self._hidden_columns.update(range(first, self._next_column))
        elif name == "table:table-row":
            hidden = self._is_hidden(attributes)
            self._row = SheetRow(self._next_number, [], hidden, hidden_columns=self._hidden_columns)
            self._times = int(attributes.get("table:number-rows-repeated", 1))
        elif name in ("table:table-cell", "table:covered-table-cell"):
            self._cell, self._text = attributes, []
        elif name in ("office:annotation", "draw:frame", "draw:custom-shape"):
            self._skipped = True  # comments and drawings hold texts, too
        elif name == "text:p" and self._cell is not None:
            self._text += ["\n"] if self._text else []
            self._paragraph = True
        elif name == "text:s":
            self._text.append(" ")
        elif name in ("text:line-break", "text:tab"):
            self._text.append("\n" if name == "text:line-break" else " ")

    def _is_hidden(self, attributes: dict[str, str]) -> bool:
        """Return whether a row or column is hidden, or in a group that is folded."""
        return any(self._groups) or attributes.get("table:visibility", "visible") != "visible"

    def _characters(self, text: str) -> None:
        if self._paragraph and not self._skipped:
            self._text.append(text)

    def _end(self, name: str) -> None:
        if name in ("office:annotation", "draw:frame", "draw:custom-shape"):
            self._skipped = False
        elif name == "table:table":
            self._inside = False
        elif name in _GROUPS and self._groups:
            self._groups.pop()
        elif name == "text:p":
            self._paragraph = False
        elif (
            name in ("table:table-cell", "table:covered-table-cell")
            and self._row is not None
            and self._cell is not None
        ):
            self._add_cell(self._row, self._cell)
            self._cell = None
        elif name == "table:table-row" and self._row is not None:
            if any(cell != "" for cell in self._row.cells):
                self._rows.append((self._row, self._times))
            self._next_number += self._times
            self._row = None

    def _add_cell(self, row: SheetRow, attributes: dict[str, str]) -> None:
        value = _cell(attributes, "".join(self._text).strip())
        times = int(attributes.get("table:number-columns-repeated", 1))
        column = len(row.cells)
        if (rows := int(attributes.get("table:number-rows-spanned", 1))) > 1:
            row.merged[column] = row.number + rows - 1
        row.cells += [value] * min(times, _MOST_COLUMNS - column)


def _cell(attributes: dict[str, str], text: str) -> Cell:
    kind = attributes.get("office:value-type", "")
    if attributes.get("calcext:value-type") == "error":
        return ERROR
    if kind == "boolean":
        return attributes.get("office:boolean-value") == "true"
    if kind == "date" and (not text or _FULL_DATE.fullmatch(text)):
        return attributes.get("office:date-value", "").removesuffix("T00:00:00").replace("T", " ")
    if not text and "office:value" in attributes:
        value = float(attributes["office:value"])
        return displayed_number(value, "0.######%") if kind == "percentage" else plain_number(value)
    return NO_VALUE if "table:formula" in attributes and not kind else text
