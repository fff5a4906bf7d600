"""Rows out of a CSV or TSV file as people save them: from Excel or LibreOffice, by scripts. Everything in it may be hostile."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.errors import SourceError
from benchmarks.files import Fields, RowProblem

SUFFIXES = (".csv", ".tsv")

_SEPARATORS = ",;\t|"
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_WORKBOOK = b"PK\x03\x04"

LONGER = "the row has more cells than the header; put a cell that holds the separator in double quotes"


def delimited_rows(file: Path) -> Iterator[tuple[int, Fields | RowProblem]]:
    """The rows under the header, each a mapping of lower-case column names to stripped cells, numbered as a spreadsheet does.

    The header is row 1. UTF-8 with or without a mark, UTF-16 with one; separated by comma, semicolon, tab or bar, whichever
    the header holds most of; cells in double quotes may hold anything. Blank rows are passed over. Raises SourceError for what
    is no such file, with the line where that is known.
    """
    table = _table(file)
    header = _header(file, next(table)[1])
    for number, cells in table:
        if any(cell.strip() for cell in cells[len(header) :]):
            yield number, RowProblem(LONGER)
        else:
            yield number, dict(zip(header, (cell.strip() for cell in cells), strict=False))


def columns(file: Path) -> list[str]:
    """The columns a file has, in lower case and in order. Raises SourceError as :func:`delimited_rows`."""
    return _header(file, next(_table(file))[1])


def _table(file: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, with their numbers: the header, then any others."""
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", _content(file))
    if lines and lines[0].strip().strip('"').lower().startswith("sep="):  # Excel's, which shows it to nobody
        del lines[0]
    empty = SourceError(f"{file.name} is empty; its first row names the columns.")
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise empty
    reader = csv.reader(lines, delimiter=max(_SEPARATORS, key=first.count), strict=True)
    number, begins, blank = 0, 1, True
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            if blank:
                raise empty from None
            return
        except csv.Error as error:
            why = "a double quote is opened and not closed" if "unexpected end" in str(error) else str(error)
            raise SourceError(
                f"{file.name} cannot be read as a table from line {begins}: {why}; write a double quote inside a cell twice."
            ) from error
        number, begins = number + 1, reader.line_num + 1
        if any(cell.strip() for cell in cells):
            blank = False
            yield number, cells


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
