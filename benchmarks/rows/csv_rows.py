"""Reader of CSV and TSV files as Excel, LibreOffice and scripts save them. Their contents may be hostile."""

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
from benchmarks.rows.base import LARGEST_LINE, Fields, RowProblem, open_source

SUFFIXES = (".csv", ".tsv")

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_WORKBOOK = b"PK\x03\x04"
_CHUNK = 1 << 20

LARGEST_CELL = 4 * 1024 * 1024
"""The maximum number of characters in a cell."""

csv.field_size_limit(LARGEST_CELL)  # a setting of the whole process

TOO_MANY_CELLS = "the row has more cells than the header; put text with {} in it in double quotes"


def read_csv_rows(file: Path) -> Iterator[tuple[int, Fields | RowProblem]]:
    """Yield the rows below the header, numbered as in a spreadsheet, as mappings of lower-case column names to stripped cells.

    The header is row 1. The encoding is UTF-8, with or without a byte order mark, or UTF-16 with one. The separator is the
    comma, semicolon, tab or bar that occurs most often in the header; quoted cells may contain anything. Blank rows are
    skipped, and so are empty cells beyond the header; a row with other cells there is a RowProblem whose place is its first
    line. Raises SourceError for any other file, with the line if it is known.
    """
    table = _Table(file)
    header = table.header
    for row in table.rows():
        if any(cell.strip() for cell in row.cells[len(header) :]):
            place = f"line {row.line} has {_filled(row.cells)} cells, the header {_filled(header)}"
            yield row.number, RowProblem(TOO_MANY_CELLS.format(_SEPARATORS[table.separator]), place)
        else:
            yield row.number, dict(zip(header, (cell.strip() for cell in row.cells), strict=False))


def read_columns(file: Path) -> list[str]:
    """Return the names of a file's columns, in lower case and in order. Raises SourceError as :func:`read_csv_rows`."""
    return _Table(file).header


class _Row(NamedTuple):
    """A row: its number in a spreadsheet, the line in which it starts, its cells."""

    number: int
    line: int
    cells: list[str]


def _filled(cells: list[str]) -> int:
    """Return the number of cells up to the last one that is not empty."""
    return max(place for place, cell in enumerate(cells, 1) if cell.strip())


class _Table:
    """A file as a table, read line by line. It raises SourceError if the file is not a table."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._row_size = 0  # characters of the current row
        self._encoding = _encoding(file)
        self.separator, self._preamble = self._layout()
        self._rows = self._parsed()
        self.header = _header(file, next(self._rows).cells)

    def rows(self) -> Iterator[_Row]:
        """Return an iterator over the rows below the header that are not blank; it can be consumed once."""
        return self._rows

    def _layout(self) -> tuple[str, int]:
        """Return the separator that occurs most often in the header, and the number of lines above the header.

        That number is 1 if Excel's line ``sep=...`` comes first, which Excel does not display, and 0 otherwise.
        """
        lines = self._lines()
        first = next(lines, "")
        preamble = int(first.strip().strip('"').lower().startswith("sep="))
        for line in lines if preamble else chain([first], lines):
            if line.strip():
                return max(_SEPARATORS, key=line.count), preamble
            self._row_size = 0
        raise self._empty()

    def _parsed(self) -> Iterator[_Row]:
        reader = csv.reader(islice(self._lines(), self._preamble, None), delimiter=self.separator, strict=True)
        number, next_line, blank = 0, 1 + self._preamble, True
        while True:
            self._row_size = 0
            try:
                cells = next(reader)
            except StopIteration:
                if blank:
                    raise self._empty() from None
                return
            except csv.Error as error:
                raise SourceError(
                    f"{self._file.name} cannot be read as a table from line {next_line}: {_explained(str(error))}."
                ) from error
            number, line, next_line = number + 1, next_line, reader.line_num + 1 + self._preamble
            if any(cell.strip() for cell in cells):
                blank = False
                yield _Row(number, line, cells)

    def _lines(self) -> Iterator[str]:
        with open_source(self._file) as data, io.TextIOWrapper(data, self._encoding, newline="") as lines:
            number = 0
            while line := lines.readline(LARGEST_LINE + 1):
                number += 1
                self._row_size += len(line)
                if self._row_size > LARGEST_LINE:
                    raise SourceError(
                        f"{self._file.name} has a row of more than {LARGEST_LINE // 1024**2} MiB in line {number}; "
                        "shorten it, or close the double quote that opens there."
                    )
                yield line

    def _empty(self) -> SourceError:
        return SourceError(f"{self._file.name} is empty; its first row names the columns.")


def _explained(error: str) -> str:
    """Return an error of the csv module as what is wrong and what to do."""
    if "field larger" in error:
        return f"a cell has more than {LARGEST_CELL:,} characters; shorten it, or close the double quote that opens it"
    problem = "a double quote is opened and not closed" if "unexpected end" in error else error
    return f"{problem}; write a double quote inside a cell twice"


def _encoding(file: Path) -> str:
    """Return the encoding of a file, after decoding all of it. Raises SourceError if it is not text."""
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
                raise SourceError(f"{file.name} contains NUL characters, so it is not text; save it as CSV UTF-8.")
            if not data:
                return encoding
            line += data.count(b"\n")
            data = stream.read(_CHUNK)


def _header(file: Path, cells: list[str]) -> list[str]:
    header = [cell.strip().lower() for cell in cells]
    counts = Counter(name for name in header if name)
    repeated = next((name for name, count in counts.items() if count > 1), None)
    if repeated is not None:
        raise SourceError(f"{file.name} has two columns called {repeated[:80]!r}; rename one.")
    return header
