"""Tables of a user's own rows: the file, and the benchmark that is built from it."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import islice
from pathlib import Path

from benchmarks.base import Benchmark
from benchmarks.errors import RashomonError, SourceError
from benchmarks.registry import get_benchmark, working_benchmarks
from benchmarks.rows.files import RawRow, SkippedRow, read_rows
from benchmarks.rows.nested_keys import flat_fields, is_filled, plain_names
from benchmarks.rows.record_file import RecordFile
from benchmarks.rows.table_presets import PRESETS, recognised
from benchmarks.rows.workbook_rows import named_sheet, split_sheet
from benchmarks.untrusted.typed_paths import typed_path

LOGS = "retrieval"
"""The benchmark that is built from a retrieval log."""

_LOG_KEYS = {"passages", "contexts", "texts", "images", "pages", "page_images", "image_answer", "text_answer"}
"""Keys of a log's lines that a table of rows does not have."""


_CELLS, _CELL = 40, 1_000
"""The most cells of a row that are displayed, and the most characters of one."""


def table_path(text: str | Path) -> Path:
    """Return the absolute path of the table, with the sheet that is named behind it. Raises SourceError if it is not a file."""
    file, sheet = split_sheet(Path(str(text).strip()))
    path = typed_path(file)
    try:
        if path.is_file():
            return named_sheet(path, sheet)
        folder = path.is_dir()
    except (OSError, ValueError):
        folder = False
    if folder:
        raise SourceError(f"{path} is a folder; name the table in it, such as {path / 'rows.csv'}.")
    if os.path.lexists(path):
        raise SourceError(f"{path} is not a regular file; save its contents to a file and name that file.")
    raise SourceError(
        f"there is no file {path}; name a CSV, Excel (.xlsx), .ods or JSON file of image, question and answer."
    )


def rows_benchmark(file: Path | None = None) -> Benchmark:
    """Return the benchmark that is built from ``file``: a retrieval log's, or else the first that is built from a table."""
    if file is not None and _is_log(file):
        return get_benchmark(LOGS)
    return next(benchmark for benchmark in working_benchmarks() if benchmark.rows_source)


class RowCells:
    """The filled cells of a table's rows as they stand; the table is read once, as far as the last row that was asked for."""

    def __init__(self, file: Path) -> None:
        self._rows = read_rows(file, file.parent, "")
        self._cells = RecordFile()
        self._numbers: dict[str, int] = {}

    def of(self, where: str) -> list[tuple[str, str]]:
        """Return the cells of a row, each with its key; empty if the row cannot be read."""
        with suppress(RashomonError):
            while where not in self._numbers and (row := next(self._rows, None)) is not None:
                self._numbers[row.where if isinstance(row, RawRow) else row.row] = self._cells.append(_cells(row))
        return [(key, text) for key, text in self._cells[self._numbers[where]]] if where in self._numbers else []


def _cells(row: RawRow | SkippedRow) -> list[tuple[str, str]]:
    fields = row.fields.items() if isinstance(row, RawRow) else ()
    cells = ((str(key), " ".join(str(value)[:_CELL].split())) for key, value in fields if is_filled(value))
    return [*islice(cells, _CELLS)]


def _is_log(file: Path) -> bool:
    """Return whether a JSON file is a retrieval log, by the keys of its first object, or those of another tool's log."""
    if file.suffix.lower() not in (".jsonl", ".json"):
        return False
    try:
        first = next((row for row in read_rows(file, file.parent, LOGS) if isinstance(row, RawRow)), None)
    except SourceError:
        return False
    if first is None:
        return False
    fields = plain_names(first.fields)
    preset = PRESETS.get(recognised({*fields, *flat_fields(fields)}, table=True))
    return not _LOG_KEYS.isdisjoint(fields) or (preset is not None and preset.is_log)
