"""Reader of CSV and TSV files as Excel, LibreOffice and scripts save them. Their contents may be hostile."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.errors import SourceError
from benchmarks.rows.reader_types import LARGEST_LINE, Fields, RowProblem
from benchmarks.rows.table_header import SEARCHED, column_names, find_header
from benchmarks.rows.text_lines import text_lines

SUFFIXES = (".csv", ".tsv")

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_BACKSLASH = re.compile(r"\\(.?)", re.DOTALL)

LARGEST_CELL = 4 * 1024 * 1024
"""The maximum number of characters in a cell."""

MOST_LINES = 10_000
"""The maximum number of lines of a cell, and of those that are searched for the header."""

csv.field_size_limit(LARGEST_CELL)  # a setting of the whole process

TOO_MANY_CELLS = "the row has more cells than the header; put text with {} in it in double quotes"
BAD_QUOTE = "a double quote in the row is not closed; write a double quote inside a cell twice"
LARGE_CELL = f"a cell of the row has more than {LARGEST_CELL:,} characters; shorten it"


def read_csv_rows(file: Path) -> Iterator[tuple[int, Fields | RowProblem]]:
    """Yield the rows below the header, numbered as in a spreadsheet, as mappings of lower-case column names to stripped cells.

    The header may have a title above it. The separator is the comma, semicolon, tab or bar that occurs most often in the
    header; quoted cells may contain anything. Quotes in cells are doubled, behind a backslash, or bare where that leaves no
    doubt. Blank rows are skipped, and so are empty cells beyond the header; a row with other cells there, or with a quote that
    is not closed, is a RowProblem whose place is its first line. Raises SourceError for a file that is not a table.
    """
    table = _Table(file)
    width = len(table.header)
    for row in table.rows:
        if isinstance(row.cells, RowProblem):
            yield row.number, row.cells
        elif any(row.cells[width:]):
            place = f"line {row.line} has {_filled(row.cells)} cells, the header {_filled(table.header)}"
            yield row.number, RowProblem(TOO_MANY_CELLS.format(_SEPARATORS[table.separator]), place)
        elif any(row.cells):
            yield row.number, dict(zip(table.header, row.cells, strict=False))


def read_columns(file: Path) -> list[str]:
    """Return the names of a file's columns, in lower case and in order. Raises SourceError as :func:`read_csv_rows`."""
    return _Table(file).header


class _Row(NamedTuple):
    """A row: its number in a spreadsheet, the line in which it starts, its stripped cells."""

    number: int
    line: int
    cells: list[str] | RowProblem


def _filled(cells: list[str]) -> int:
    """Return the number of cells up to the last one that is not empty."""
    return max((place for place, cell in enumerate(cells, 1) if cell), default=0)


class _Lines:
    """The lines of a file, some of which can be put back; ``number`` is that of the last one taken."""

    def __init__(self, file: Path) -> None:
        self._lines = text_lines(file)
        self._waiting: deque[str | RowProblem] = deque()
        self.number = 0

    def take(self) -> str | RowProblem | None:
        line = self._waiting.popleft() if self._waiting else next(self._lines, None)
        self.number += line is not None
        return line

    def put_back(self, lines: Iterable[str | RowProblem]) -> None:
        lines = list(lines)
        self._waiting.extendleft(reversed(lines))
        self.number -= len(lines)


class _Table:
    """A file as a table: its ``separator``, its ``header`` and an iterator over the ``rows`` below, which can be used once."""

    def __init__(self, file: Path) -> None:
        self._lines = _Lines(file)
        self.separator, above = self._layout(file)
        self._width = 0
        self._number = 0
        for _ in range(above):
            self._lines.take()
            self._number += 1
        self.rows = self._read()
        cells = next(self.rows).cells
        if isinstance(cells, RowProblem):
            raise SourceError(f"the header of {file.name} cannot be read: {cells}.")
        self.header = column_names(cells, file.name)
        self._width = len(cells)

    def _layout(self, file: Path) -> tuple[str, int]:
        """Return the separator, and the number of lines above the header."""
        first = self._lines.take()
        # Excel's line ``sep=;`` names the separator; it is not displayed and no row.
        if not (isinstance(first, str) and first.strip().strip('"').lower().startswith("sep=")):
            self._lines.put_back([] if first is None else [first])
        lines: list[str | RowProblem] = []
        size = filled = 0
        while (
            filled < SEARCHED
            and len(lines) < MOST_LINES
            and size < LARGEST_LINE
            and (line := self._lines.take()) is not None
        ):
            lines.append(line)
            size += len(line) if isinstance(line, str) else 0
            filled += isinstance(line, str) and bool(line.strip())
        self._lines.put_back(lines)
        texts = [line if isinstance(line, str) else "" for line in lines]
        headers = [
            (*header, -texts[header[1]].count(separator), separator)
            for separator in _SEPARATORS
            if (header := find_header([[cell.strip(' "') for cell in text.split(separator)] for text in texts]))
        ]
        if not headers:
            raise SourceError(f"{file.name} is empty; its first row names the columns.")
        _, place, _, separator = min(headers)
        return separator, place

    def _read(self) -> Iterator[_Row]:
        while (line := self._lines.take()) is not None:
            self._number += 1
            first = self._lines.number
            cells = line if isinstance(line, RowProblem) else self._cells(line)
            if isinstance(cells, RowProblem):
                yield _Row(self._number, first, RowProblem(str(cells), cells.place or f"line {first}"))
            else:
                yield _Row(self._number, first, [cell.strip() for cell in cells])

    def _cells(self, line: str) -> list[str] | RowProblem:
        """Return the cells of the row that begins with ``line``, with the lines that its quoted cells take up."""
        if len(line) > LARGEST_CELL:
            return RowProblem(LARGE_CELL)
        if ('"' not in line and "\\" not in line) or line.rstrip("\r\n") == "\\":
            return line.split(self.separator)
        cells, more = self._quoted(line, escaped=False)
        if (escaped := self._escaped(line, more)) is not None:
            return escaped
        sound = cells if isinstance(cells, list) and not self._swallows(cells, [line, *more]) else None
        if sound is not None and not any(map(str.strip, sound[self._width or None :])):
            return sound
        bare = [_bare(cell.strip()) for cell in line.split(self.separator)]
        plain = self._plain(bare)
        if sound is not None and plain is None:
            return sound
        self._lines.put_back(more)
        if len(bare) > self._width > 0:
            return line.split(self.separator)
        if plain is not None:
            return plain
        return RowProblem(BAD_QUOTE) if isinstance(cells, list) else cells

    def _plain(self, bare: Sequence[str | None]) -> list[str] | None:
        """Return cells without their quotes if all are known and there is one for each column; None otherwise."""
        cells = [cell for cell in bare if cell is not None]
        return cells if len(cells) == len(bare) == self._width else None

    def _escaped(self, line: str, more: Sequence[str]) -> list[str] | None:
        """Return the cells of a row in which backslashes escape; None if they do not, and then ``more`` stay taken."""
        if not (self._width and re.search(rf'\\["\r\n{re.escape(self.separator)}]', "".join([line, *more]))):
            return None
        self._lines.put_back(more)
        cells, taken = self._quoted(line, escaped=True)
        if (
            isinstance(cells, list)
            and len(cells) == self._width
            and (taken or re.search(rf'\\["{re.escape(self.separator)}]', line))  # a line end escapes nothing alone
            and not self._swallows(cells, [line, *taken])
        ):
            return cells
        self._lines.put_back(taken)
        for _ in more:
            self._lines.take()
        return None

    def _swallows(self, cells: list[str], lines: Sequence[str]) -> bool:
        """Return whether a row of several lines may be as many rows: one opens a quote, a later one closes it."""
        whole = [line.count(self.separator) == self._width - 1 for line in lines]
        return len(lines) > 1 and whole[0] and (len(cells) != self._width or all(whole))

    def _quoted(self, line: str, *, escaped: bool) -> tuple[list[str] | RowProblem, list[str]]:
        """Return the cells of a row as the csv module reads them, and the lines behind the first that it has taken.

        If ``escaped``, a backslash escapes quotes, separators, line ends and backslashes.
        """
        more: list[str] = []

        def text(part: str) -> str:
            marks = '"\\\r\n' + self.separator
            return _BACKSLASH.sub(lambda m: m[0] if m[1] in marks else "\\" + m[0], part) if escaped else part

        def parts() -> Iterator[str]:
            yield text(line)
            size = len(line)
            while len(more) < MOST_LINES and size < LARGEST_LINE and (part := self._lines.take()) is not None:
                if isinstance(part, RowProblem):
                    self._lines.put_back([part])
                    return
                more.append(part)
                size += len(part)
                yield text(part)

        escape = "\\" if escaped else None
        try:
            reader = csv.reader(
                parts(), delimiter=self.separator, escapechar=escape, skipinitialspace=True, strict=True
            )
            return next(reader), more
        except csv.Error as error:
            return RowProblem(LARGE_CELL if "field larger" in str(error) else BAD_QUOTE), more


def _bare(cell: str) -> str | None:
    """Return the text of a cell whose quotes are not escaped; None if they may belong to a text with separators."""
    if cell.count('"') % 2 == 0:
        return cell[1:-1] if cell.startswith('"') and cell.endswith('"') and '"' not in cell[1:-1] else cell
    return cell[1:-1] if len(cell) > 2 and cell.startswith('"') and cell.endswith('"') else None
