"""Rows of .xlsx workbooks: values by calamine, and by the sheet's XML what calamine drops.

Calamine gives 48.2% as 0.482, a year as a day, and an error or a formula that was never calculated as an empty cell.
"""

from __future__ import annotations

import datetime
import re
import zipfile
from collections import deque
from collections.abc import Iterator, Mapping
from typing import IO, Any
from xml.etree import ElementTree
from xml.parsers import expat

from benchmarks.rows.cell_answers import ERROR, NO_VALUE
from benchmarks.rows.number_formats import BUILT_IN, displayed_moment, displayed_number, displayed_text, plain_number
from benchmarks.rows.sheet_row import Cell, SheetRow

_CHUNK = 1 << 18
_LARGEST_PART = 64 * 1024 * 1024
"""The maximum size of a workbook's parts other than its sheets, in bytes."""
_MARKS = re.compile(rb"""t=["']e["']|[<:]f[ >/]|hidden=""")
_MOST_COLUMNS = 16_384
_COLUMN = re.compile("[A-Z]{1,3}")


class _Notes:
    """A row of a sheet's XML: whether it is hidden, the style of each cell, the errors, and the formulas that need a value."""

    __slots__ = ("failed", "formulas", "hidden", "number", "styles")

    def __init__(self, number: int, hidden: bool) -> None:
        self.number, self.hidden = number, hidden
        self.styles: dict[int, int] = {}
        self.failed: set[int] = set()
        self.formulas: set[int] = set()


def xlsx_rows(file: IO[bytes], workbook: Any, sheet: str) -> Iterator[SheetRow]:
    """Yield the rows of a sheet of calamine's ``workbook``, read from ``file``, without most of the empty ones."""
    values = workbook.get_sheet_by_name(sheet)
    starts: dict[int, dict[int, int]] = {}
    for (first, column), (last, _) in values.merged_cell_ranges or ():
        if last > first:
            starts.setdefault(first + 1, {})[column] = last + 1
    with zipfile.ZipFile(file) as archive:
        codes = _formats(archive)
        part = _part(archive, sheet)
        plain = all(code in ("", "General", "@") for code in codes.values()) and not _is_marked(archive, part)
        hidden_columns: set[int] = set()
        notes = iter(()) if plain else _notes(archive, part, hidden_columns)
        note = next(notes, None)
        for number, row in enumerate(values.iter_rows(), 1):
            while note is not None and note.number < number:
                note = next(notes, None)
            has_note = note is not None and note.number == number
            if not has_note and row.count("") == len(row):
                continue  # a sheet with a cell in its last row has a million of these
            own = note if note is not None and has_note else _Notes(number, False)
            cells: list[Cell] = [
                ERROR
                if column in own.failed
                else NO_VALUE
                if column in own.formulas and value == ""
                else _cell(value, codes.get(own.styles.get(column, 0), ""))
                for column, value in enumerate(row)
            ]
            yield SheetRow(number, cells, own.hidden, starts.get(number, {}), hidden_columns)


def _cell(value: Any, code: str) -> Cell:
    if isinstance(value, str):
        return displayed_text(value, code) if "@" in code else value
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return displayed_number(float(value), code) if code and code != "General" else plain_number(float(value))
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        return displayed_moment(value, code)
    return str(value)


def _xml(archive: zipfile.ZipFile, part: str) -> ElementTree.Element | None:
    """Return the root of a part; None if there is none."""
    try:
        if archive.getinfo(part).file_size > _LARGEST_PART:
            raise MemoryError
        return ElementTree.fromstring(archive.read(part))
    except KeyError:
        return None


def _part(archive: zipfile.ZipFile, sheet: str) -> str:
    """Return the name of a sheet's part. Raises ValueError without it."""
    workbook, relations = _xml(archive, "xl/workbook.xml"), _xml(archive, "xl/_rels/workbook.xml.rels")
    if workbook is None or relations is None:
        raise ValueError("no workbook")
    targets = {relation.get("Id"): relation.get("Target", "") for relation in relations}
    for element in workbook.iter():
        if _local(element.tag) == "sheet" and element.get("name") == sheet:
            target = targets[next(value for name, value in element.items() if _local(name) == "id")]
            return target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    raise ValueError("no sheet")


def _formats(archive: zipfile.ZipFile) -> Mapping[int, str]:
    """Return the code of the number format of each style."""
    styles = _xml(archive, "xl/styles.xml")
    if styles is None:
        return {}
    codes = dict(BUILT_IN)
    codes |= {
        int(e.get("numFmtId", 0)): e.get("formatCode", "")[:255] for e in styles.iter() if _local(e.tag) == "numFmt"
    }
    cells = next((element for element in styles if _local(element.tag) == "cellXfs"), ())
    return {style: codes.get(int(cell.get("numFmtId", 0)), "") for style, cell in enumerate(cells)}


def _local(name: str) -> str:
    return re.split("[}:]", name)[-1]


def _is_marked(archive: zipfile.ZipFile, part: str) -> bool:
    """Return whether a sheet's XML may have an error, a formula or a hidden row; searching it is faster than parsing it."""
    with archive.open(part) as stream:
        end = b""
        while data := stream.read(_CHUNK):
            if _MARKS.search(end + data):
                return True
            end = data[-20:]
    return False


def _notes(archive: zipfile.ZipFile, part: str, hidden_columns: set[int]) -> Iterator[_Notes]:
    """Yield the rows of a sheet's XML, which is read in pieces, and before the first fill in ``hidden_columns``."""
    rows: deque[_Notes] = deque()
    reader = _SheetReader(rows, hidden_columns)
    with archive.open(part) as stream:
        while data := stream.read(_CHUNK):
            reader.feed(data)
            while len(rows) > 1:
                yield rows.popleft()
    yield from rows


class _SheetReader:
    """A parser of a sheet's XML, which appends to ``rows``; the last one is unfinished."""

    def __init__(self, rows: deque[_Notes], hidden_columns: set[int]) -> None:
        self._rows, self._hidden_columns = rows, hidden_columns
        self._number = self._column = -1
        self._formula = self._value = self._text = False
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        self.feed = parser.Parse

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        match name.rpartition(":")[2]:
            case "col" if attributes.get("hidden") in ("1", "true"):
                last = min(int(attributes["max"]), _MOST_COLUMNS)
                self._hidden_columns.update(range(int(attributes["min"]) - 1, last))
            case "row":
                self._number = int(attributes.get("r", max(self._number, 0) + 1))
                self._column = -1
                self._rows.append(_Notes(self._number, attributes.get("hidden") in ("1", "true")))
            case "c" if self._rows:
                place = _COLUMN.match(attributes.get("r", ""))
                self._column = _column(place[0]) if place else self._column + 1
                self._formula = self._value = False
                self._text = attributes.get("t") == "str"
                if attributes.get("t") == "e":
                    self._rows[-1].failed.add(self._column)
                if "s" in attributes:
                    self._rows[-1].styles[self._column] = int(attributes["s"])
            case "f":
                self._formula = True
            case "v":
                self._value = True

    def _end(self, name: str) -> None:
        # Only the value of a formula that is a text may be empty.
        needs_value = self._formula and not (self._value and self._text)
        if needs_value and self._rows and name.rpartition(":")[2] == "c":
            self._rows[-1].formulas.add(self._column)


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1
