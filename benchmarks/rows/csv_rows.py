"""Rows out of a CSV or TSV file as people save them: from Excel or LibreOffice, by scripts. Everything in it may be hostile."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from benchmarks.errors import SourceError
from benchmarks.rows.files import LARGEST_LINE, Fields, RowProblem, open_source

SUFFIXES = (".csv", ".tsv")

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_WORKBOOK = b"PK\x03\x04"
_CHUNK = 1 << 20

LARGEST_CELL = 4 * 1024 * 1024
"""Characters of a cell."""

csv.field_size_limit(LARGEST_CELL)  # which is the whole process's

LONGER = "the row has more cells than the header; put text with {} in it in double quotes"


def delimited_rows(file: Path) -> Iterator[tuple[int, Fields | RowProblem]]:
    """The rows under the header, each a mapping of lower-case column names to stripped cells, numbered as a spreadsheet does.

    The header is row 1. UTF-8 with or without a mark, UTF-16 with one; separated by comma, semicolon, tab or bar, whichever
    the header holds most of; cells in double quotes may hold anything. Blank rows are passed over, and so are empty cells
    beyond the header; a row with others there is a RowProblem whose place is the line it begins in. Raises SourceError for
    what is no such file, with the line where that is known.
    """
    table = _Table(file)
    header = table.header
    for row in table.rows():
        if any(cell.strip() for cell in row.cells[len(header) :]):
            place = f"line {row.line} has {_filled(row.cells)} cells, the header {_filled(header)}"
            yield row.number, RowProblem(LONGER.format(_SEPARATORS[table.separator]), place)
        else:
            yield row.number, dict(zip(header, (cell.strip() for cell in row.cells), strict=False))


def columns(file: Path) -> list[str]:
    """The columns a file has, in lower case and in order. Raises SourceError as :func:`delimited_rows`."""
    return _Table(file).header


class _Row(NamedTuple):
    """A row: its number in a spreadsheet, the line it begins in, its cells."""

    number: int
    line: int
    cells: list[str]


def _filled(cells: list[str]) -> int:
    """How many cells there are up to the last that is not empty."""
    return max(place for place, cell in enumerate(cells, 1) if cell.strip())


class _Table:
    """A file as a table, read line by line. Raises SourceError for what is none."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._taken = 0  # characters of the row that is being read
        self._encoding = _encoding(file)
        self.separator, self._above = self._layout()
        self._rows = self._parsed()
        self.header = _header(file, next(self._rows).cells)

    def rows(self) -> Iterator[_Row]:
        """The rows under the header that are not blank; once."""
        return self._rows

    def _layout(self) -> tuple[str, int]:
        """What separates cells, of the separators what the first line holds most of; and how many lines stand above it:
        Excel's one that names the separator, which Excel shows to nobody, or none."""
        lines = self._lines()
        first = next(lines, "")
        above = int(first.strip().strip('"').lower().startswith("sep="))
        for line in lines if above else chain([first], lines):
            if line.strip():
                return max(_SEPARATORS, key=line.count), above
            self._taken = 0
        raise self._empty()

    def _parsed(self) -> Iterator[_Row]:
        reader = csv.reader(islice(self._lines(), self._above, None), delimiter=self.separator, strict=True)
        number, begins, blank = 0, 1 + self._above, True
        while True:
            self._taken = 0
            try:
                cells = next(reader)
            except StopIteration:
                if blank:
                    raise self._empty() from None
                return
            except csv.Error as error:
                raise SourceError(
                    f"{self._file.name} cannot be read as a table from line {begins}: {_why(str(error))}."
                ) from error
            number, line, begins = number + 1, begins, reader.line_num + 1 + self._above
            if any(cell.strip() for cell in cells):
                blank = False
                yield _Row(number, line, cells)

    def _lines(self) -> Iterator[str]:
        with open_source(self._file) as data, io.TextIOWrapper(data, self._encoding, newline="") as lines:
            number = 0
            while line := lines.readline(LARGEST_LINE + 1):
                number += 1
                self._taken += len(line)
                if self._taken > LARGEST_LINE:
                    raise SourceError(
                        f"{self._file.name} has a row of more than {LARGEST_LINE // 1024**2} MiB in line {number}; "
                        "shorten it, or close the double quote that opens there."
                    )
                yield line

    def _empty(self) -> SourceError:
        return SourceError(f"{self._file.name} is empty; its first row names the columns.")


def _why(error: str) -> str:
    if "field larger" in error:
        return f"a cell has more than {LARGEST_CELL:,} characters; shorten it, or close the double quote that opens it"
    why = "a double quote is opened and not closed" if "unexpected end" in error else error
    return f"{why}; write a double quote inside a cell twice"


def _encoding(file: Path) -> str:
    """Return what a file is encoded in, all of it. Raises SourceError where it is no text."""
    with open_source(file) as stream:
        data = stream.read(_CHUNK)
        if data.startswith(_WORKBOOK):
            raise SourceError(f"{file.name} is a workbook, not text; save it as CSV UTF-8 from your spreadsheet.")
        encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8")
        decoder, line = codecs.getincrementaldecoder(encoding)(), 1
        while True:
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                line += error.object.count(b"\n", 0, error.start)
                raise SourceError(
                    f"{file.name} is not {encoding[:6].upper()} in line {line}; save it as CSV UTF-8."
                ) from error
            if "\0" in text:
                raise SourceError(f"{file.name} holds NUL characters, so it is no text; save it as CSV UTF-8.")
            if not data:
                return encoding
            line += data.count(b"\n")
            data = stream.read(_CHUNK)


def _header(file: Path, cells: list[str]) -> list[str]:
    header = [cell.strip().lower() for cell in cells]
    counts = Counter(name for name in header if name)
    twice = next((name for name, count in counts.items() if count > 1), None)
    if twice is not None:
        raise SourceError(f"{file.name} has two columns called {twice[:80]!r}; rename one.")
    return header
