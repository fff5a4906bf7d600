"""Tables of a user's own rows: the file, and the benchmark that is built from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from benchmarks.base import Benchmark
from benchmarks.cmc_bench.sources.base import SourceRow
from benchmarks.cmc_bench.sources.own_rows import read as read_table
from benchmarks.errors import RashomonError, SourceError
from benchmarks.media.pdf import PdfPage
from benchmarks.registry import benchmark_names, get_benchmark
from benchmarks.retrieval.log_row import LogRow
from benchmarks.retrieval.sources.log_file import read as read_log
from benchmarks.rows.base import shortened
from benchmarks.rows.files import ImageFile, Loader, RawRow, ShownImage, SkippedRow, read_rows
from benchmarks.rows.nested_keys import flat_fields, is_filled, plain_names
from benchmarks.rows.presets import PRESETS, recognised
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
    raise SourceError(
        f"there is no file {path}; name a CSV, Excel (.xlsx), .ods or JSON file of image, question and answer."
    )


def rows_benchmark(file: Path | None = None) -> Benchmark:
    """Return the benchmark that is built from ``file``: a retrieval log's, or else the first that is built from a table."""
    if file is not None and _is_log(file):
        return get_benchmark(LOGS)
    return next(benchmark for name in benchmark_names() if (benchmark := get_benchmark(name)).rows_source)


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A row as it is read: its place, its content or the reason why it is left out, and whether it is used."""

    where: str
    text: str
    usable: bool = True


def first_rows(file: Path, benchmark: Benchmark, mapping: str, count: int = 3) -> list[ReadRow]:
    """Return the first rows of a table or log as ``mapping`` reads them. Raises RashomonError."""
    rows: Iterator[SourceRow | LogRow | SkippedRow]
    rows = (read_log if benchmark.name == LOGS else read_table)(str(file), "", mapping)
    return [_read_row(row) for row in islice(rows, count)]


def row_cells(file: Path, where: str) -> list[tuple[str, str]]:
    """Return the filled cells of one row of a table as they stand, each with its key; empty if the row cannot be read."""
    with suppress(RashomonError):
        for row in read_rows(file, file.parent, ""):
            if isinstance(row, RawRow) and row.where == where:
                cells = (
                    (str(key), " ".join(str(value)[:_CELL].split()))
                    for key, value in row.fields.items()
                    if is_filled(value)
                )
                return [*islice(cells, _CELLS)]
    return []


def _read_row(row: SourceRow | LogRow | SkippedRow) -> ReadRow:
    if isinstance(row, SkippedRow):
        return ReadRow(row.row, f"{row.reason}: {row.place}" if row.place else row.reason, usable=False)
    images = row.images if isinstance(row, LogRow) else (row.image,)
    passages = row.passages if isinstance(row, LogRow) else filter(None, (row.passage,))
    usable = bool(row.question and (isinstance(row, LogRow) or row.answer))
    parts = [row.question or "no question", row.answer or "no answer", *map(_image_name, images), *passages]
    return ReadRow(row.row, " │ ".join(shortened(" ".join(part.split()), 80) for part in parts), usable)


def _image_name(load: Loader) -> str:
    original = load.original if isinstance(load, ShownImage) else load
    if isinstance(original, PdfPage):
        return f"{original.path.name}#page={original.page}"
    return original.path.name if isinstance(original, ImageFile) else "a picture in the cell"


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
