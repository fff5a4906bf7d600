"""Reader of .xlsx and .ods workbooks in a child process; ``python -m benchmarks.rows.workbook_rows`` runs the child."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

from benchmarks.rows.child_reader import ChildReader
from benchmarks.rows.reader_types import LARGEST_LINE, Fields, RowProblem
from benchmarks.rows.sheet_row import Cell, RefusedError, SheetRow
from benchmarks.rows.table_header import SEARCHED, column_names, find_header
from benchmarks.untrusted.bounded_process import serve

SUFFIXES = (".xlsx", ".xlsm", ".ods")
OLD_SUFFIXES = (".xls", ".xlsb", ".numbers")

UNPACKED = 8
"""The child's bytes of memory for each of the file; calamine holds a sheet in memory."""

SECONDS = 20.0

MOST_ROWS = 1 << 20
"""The maximum number of rows of a sheet, as in Excel; an .ods file can repeat a row as often as it likes."""

HIDDEN = "the row is hidden in the spreadsheet; show it, or remove it"
LONG_ROW = f"the row is larger than {LARGEST_LINE // 1024**2} MiB"

_SHEET = "#sheet="
_ROWS_AT_ONCE = 100
_MOST_SHEETS = 500
"""The maximum number of sheets that are searched for a table; each reads the list of all."""
_LARGEST_OLE = 256 * 1024 * 1024
_LARGEST_MANIFEST = 1 << 20
_OLE = b"\xd0\xcf\x11\xe0"
_reader = ChildReader("benchmarks.rows.workbook_rows", UNPACKED, SECONDS, "save its sheet as CSV UTF-8")


def split_sheet(path: Path) -> tuple[Path, str]:
    """Return the file of ``FILE.xlsx#sheet=NAME`` and the name of the sheet; the name is empty in other paths."""
    file, mark, sheet = str(path).rpartition(_SHEET)
    return (Path(file), sheet) if mark and is_workbook(file) else (path, "")


def named_sheet(file: Path, sheet: str) -> Path:
    """Return the path of a sheet of a workbook, or of the workbook if ``sheet`` is empty."""
    return file.with_name(f"{file.name}{_SHEET}{sheet}") if sheet else file


def is_workbook(name: str | Path) -> bool:
    """Return whether a file, with or without a sheet behind it, is a workbook that can be read, by its name."""
    return str(name).partition(_SHEET)[0].lower().endswith(SUFFIXES)


def read_workbook_rows(file: Path, sheet: str, name: str) -> Iterator[tuple[int, Fields | RowProblem]]:
    """Yield the rows below the header, numbered as in the spreadsheet, by the lower-case names of their columns.

    A cell is the text that its owner sees, or a bool; a merged one is in each of its rows. The ``sheet`` is the first visible one
    that looks like a table, unless it is named. A hidden row is a RowProblem. Raises SourceError, whose message calls the file
    ``name``.
    """
    header: list[str] = []
    for fields, _ in _reader.messages(file, name, sheet=sheet):
        if "header" in fields:
            header = column_names(fields["header"], name)
        for number, cells in fields.get("rows", ()):
            if isinstance(cells, str):
                yield number, RowProblem(cells)
            else:
                yield number, {key: cell for key, cell in zip(header, cells, strict=False) if key}


def workbook_remarks(path: Path) -> list[str]:
    """Return remarks on hidden columns, and visible sheets with rows, that are not read; none for other files.

    Raises SourceError.
    """
    file, asked = split_sheet(path)
    if not is_workbook(file):
        return []
    ((fields, _),) = _reader.messages(file, file.name, sheet=asked, list=True)
    sheet, others, hidden = fields["sheet"], fields["others"], fields["hidden"]
    names = ", ".join(other[:40] for other in others[:6])
    columns = ", ".join(name[:40] for name in hidden[:6])
    remarks = (
        [f"hidden columns are not read: {columns}; show them in the spreadsheet to have them read"] if hidden else []
    )
    if others:
        other = f"{file.name}{_SHEET}{others[0][:40]}"
        remarks.append(f"only the sheet {sheet[:40]} is read, not {names}; {other} reads another")
    return remarks


def _prepare(request: dict[str, Any]) -> None:
    import python_calamine  # noqa: F401


def _handle(request: dict[str, Any], file: IO[bytes] | None) -> Iterator[tuple[dict[str, Any], bytes]]:
    assert file is not None
    try:
        for message in _messages(file, request["sheet"], listing=request.get("list", False)):
            yield message, b""
    except MemoryError:
        raise
    except RefusedError as error:
        yield {"error": str(error)}, b""
    except Exception as error:  # calamine, zipfile and expat raise errors of many kinds for hostile files
        yield {"error": f"is not a whole workbook ({type(error).__name__}); save it again as .xlsx."}, b""


def _messages(file: IO[bytes], asked: str, *, listing: bool) -> Iterator[dict[str, Any]]:
    workbook = _open(file)
    best: tuple[int, str, Iterator[SheetRow]] | None = None
    filled = []
    for sheet in _sheets(workbook, asked):
        rows = _rows(file, workbook, sheet)
        first = [row for _, row in zip(range(SEARCHED), rows, strict=False)]
        header = find_header([_texts(row) for row in first])
        if header is None:
            continue
        filled.append((header[0], sheet))
        if best is None or header[0] < best[0]:
            best = header[0], sheet, chain(first[header[1] :], rows)
        if header[0] == 0 and not listing:
            break
    if best is None:
        raise RefusedError("has no visible sheet with rows; its first row names the columns.")
    _, sheet, rows = best
    if listing:
        others = [name for _, name in sorted(filled, key=itemgetter(0)) if name != sheet]
        yield {"sheet": sheet, "others": others, "hidden": _hidden_columns(next(rows))}
    else:
        yield from _table(rows)


def _sheets(workbook: Any, asked: str) -> list[str]:
    """Return the sheet that is asked for, or all visible ones. Raises RefusedError without it, and for too many."""
    worksheets = [sheet for sheet in workbook.sheets_metadata if str(sheet.typ).endswith("WorkSheet")]
    sheets = [sheet.name for sheet in worksheets if str(sheet.visible).endswith(".Visible") or sheet.name == asked]
    if asked and asked not in sheets:
        names = ", ".join(sheet[:40] for sheet in sheets[:12])
        raise RefusedError(f"has no sheet {asked[:80]!r}; its sheets are {names}.")
    if not asked and len(sheets) > _MOST_SHEETS:
        raise RefusedError(f"has more than {_MOST_SHEETS} sheets; name the right one, as in book.xlsx#sheet=NAME.")
    return [asked] if asked else sheets


def _hidden_columns(header: SheetRow) -> list[str]:
    return [name for column, name in enumerate(_texts(header)) if name.strip() and column in header.hidden_columns]


def _open(file: IO[bytes]) -> Any:
    import python_calamine

    start = file.read(4)
    file.seek(0)
    if not start.startswith((b"PK", _OLE)):
        raise RefusedError("is no workbook; give it the ending of what it is, such as .csv, or save it as .xlsx.")
    if start != _OLE and _is_encrypted(file):
        raise RefusedError("has a password; save a copy without one.")
    if start == _OLE:
        # A workbook with a password is a package inside an OLE file, and so is the old format.
        if "EncryptedPackage".encode("utf-16-le") in file.read(_LARGEST_OLE):
            raise RefusedError("has a password; save a copy without one.")
        raise RefusedError("is a workbook of the old kind; save it as .xlsx from your spreadsheet.")
    file.seek(0)
    try:
        return python_calamine.CalamineWorkbook.from_filelike(file)
    except python_calamine.PasswordError:
        raise RefusedError("has a password; save a copy without one.") from None


def _is_encrypted(file: IO[bytes]) -> bool:
    """Return whether an .ods file has a password, which only its manifest says."""
    with zipfile.ZipFile(file) as archive:
        if "META-INF/manifest.xml" not in archive.namelist():
            return False
        with archive.open("META-INF/manifest.xml") as manifest:
            return b"encryption-data" in manifest.read(_LARGEST_MANIFEST)


def _rows(file: IO[bytes], workbook: Any, sheet: str) -> Iterator[SheetRow]:
    from benchmarks.rows.ods_rows import ods_rows
    from benchmarks.rows.xlsx_rows import xlsx_rows

    with zipfile.ZipFile(file) as archive:
        is_ods = "content.xml" in archive.namelist()
    return _filled(ods_rows(file, sheet) if is_ods else xlsx_rows(file, workbook, sheet))


def _filled(rows: Iterable[SheetRow]) -> Iterator[SheetRow]:
    """Yield the rows that are not empty, with the value of each merged cell in all of its rows."""
    merged: dict[int, tuple[int, Cell]] = {}
    for row in rows:
        if row.number > MOST_ROWS:
            raise RefusedError(f"has more than {MOST_ROWS:,} rows; save it as smaller files.")
        merged = {column: (last, value) for column, (last, value) in merged.items() if last >= row.number}
        if not any(cell != "" for cell in row.cells):
            continue
        for column, (_, value) in merged.items():
            row.cells += [""] * (column + 1 - len(row.cells))
            row.cells[column] = value
        merged |= {column: (last, row.cells[column]) for column, last in row.merged.items() if column < len(row.cells)}
        yield row


def _texts(row: SheetRow) -> list[str]:
    return [str(cell) for cell in row.cells]


def _table(rows: Iterator[SheetRow]) -> Iterator[dict[str, Any]]:
    header = next(rows)
    yield {"header": ["" if n in header.hidden_columns else text for n, text in enumerate(_texts(header))]}
    batch: list[tuple[int, list[Cell] | str]] = []
    size = 0
    for row in rows:
        length = len(json.dumps(row.cells))
        content: list[Cell] | str = HIDDEN if row.hidden else LONG_ROW if length > LARGEST_LINE else row.cells
        batch.append((row.number, content))
        size += length
        if len(batch) == _ROWS_AT_ONCE or size > LARGEST_LINE:
            yield {"rows": batch}
            batch, size = [], 0
    yield {"rows": batch}


if __name__ == "__main__":
    serve(_handle, _prepare)
