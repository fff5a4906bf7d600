"""Rows out of a CSV or TSV file as people save them: from Excel or LibreOffice, by scripts. Everything in it may be hostile."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.errors import SourceError
from benchmarks.files import Fields, RowProblem

SUFFIXES = (".csv", ".tsv")

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_WORKBOOK = b"PK\x03\x04"

LONGER = "the row has more cells than the header; put text with {} in it in double quotes"


def delimited_rows(file: Path) -> Iterator[tuple[int, Fields | RowProblem]]:
    """The rows under the header, each a mapping of lower-case column names to stripped cells, numbered as a spreadsheet does.

    The header is row 1. UTF-8 with or without a mark, UTF-16 with one; separated by comma, semicolon, tab or bar, whichever
    the header holds most of; cells in double quotes may hold anything. Blank rows are passed over, and so are empty cells
    beyond the header; a row with others there is a RowProblem whose place is the line it begins in. Raises SourceError for
    what is no such file, with the line where that is known.
    """
    lines, separator = _lines(file)
    table = _table(file, lines, separator)
    header = _header(file, next(table).cells)
    for row in table:
        if any(cell.strip() for cell in row.cells[len(header) :]):
            place = f"line {row.line} has {_filled(row.cells)} cells, the header {_filled(header)}"
            yield row.number, RowProblem(LONGER.format(_SEPARATORS[separator]), place)
        else:
            yield row.number, dict(zip(header, (cell.strip() for cell in row.cells), strict=False))


def columns(file: Path) -> list[str]:
    """The columns a file has, in lower case and in order. Raises SourceError as :func:`delimited_rows`."""
    return _header(file, next(_table(file, *_lines(file))).cells)


class _Row(NamedTuple):
    """A row: its number in a spreadsheet, the line it begins in, its cells."""

    number: int
    line: int
    cells: list[str]


def _filled(cells: list[str]) -> int:
    """How many cells there are up to the last that is not empty."""
    return max(place for place, cell in enumerate(cells, 1) if cell.strip())


def _lines(file: Path) -> tuple[list[str], str]:
    """The lines, and what separates cells: of the separators, what the first line holds most of. Raises SourceError."""
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", _content(file))
    first = next((line for line in lines[_above(lines) :] if line.strip()), None)
    if first is None:
        raise _empty(file)
    return lines, max(_SEPARATORS, key=first.count)


def _above(lines: list[str]) -> int:
    """How many lines stand above the table: Excel's one that names the separator, which Excel shows to nobody, or none."""
    return int(bool(lines) and lines[0].strip().strip('"').lower().startswith("sep="))


def _empty(file: Path) -> SourceError:
    return SourceError(f"{file.name} is empty; its first row names the columns.")


def _table(file: Path, lines: list[str], separator: str) -> Iterator[_Row]:
    """The rows that are not blank: the header, then any others."""
    above = _above(lines)
    reader = csv.reader(lines[above:], delimiter=separator, strict=True)
    number, begins, blank = 0, 1 + above, True
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            if blank:
                raise _empty(file) from None
            return
        except csv.Error as error:
            why = "a double quote is opened and not closed" if "unexpected end" in str(error) else str(error)
            raise SourceError(
                f"{file.name} cannot be read as a table from line {begins}: {why}; write a double quote inside a cell twice."
            ) from error
        number, line, begins = number + 1, begins, reader.line_num + 1 + above
        if any(cell.strip() for cell in cells):
            blank = False
            yield _Row(number, line, cells)


def _content(file: Path) -> str:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise SourceError(
            f"{file} cannot be read ({error.strerror}); check that it is there and may be read."
        ) from error
    if data.startswith(_WORKBOOK):
        raise SourceError(f"{file.name} is a workbook, not text; save it as CSV UTF-8 from your spreadsheet.")
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8")
    try:
        content = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{file.name} is not {encoding[:6].upper()} in line {line}; save it as CSV UTF-8.") from error
    if "\0" in content:
        raise SourceError(f"{file.name} holds NUL characters, so it is no text; save it as CSV UTF-8.")
    return content


def _header(file: Path, cells: list[str]) -> list[str]:
    header = [cell.strip().lower() for cell in cells]
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice is not None:
        raise SourceError(f"{file.name} has two columns called {twice!r}; rename one.")
    return header
