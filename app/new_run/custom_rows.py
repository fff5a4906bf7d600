"""Tables of a user's own rows: the file, and the benchmark that is built from it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.base import Benchmark
from benchmarks.errors import SourceError
from benchmarks.registry import benchmark_names, get_benchmark
from benchmarks.rows.json_rows import read_json_lines
from benchmarks.rows.workbook_rows import named_sheet, split_sheet
from benchmarks.untrusted.typed_paths import typed_path

LOGS = "retrieval"
"""The benchmark that is built from a retrieval log."""

_LOG_KEYS = {"passages", "contexts", "texts", "images", "pages", "page_images", "image_answer", "text_answer"}
"""Keys of a log's lines that a table of rows does not have."""


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


def _is_log(file: Path) -> bool:
    """Return whether a JSON Lines file is a retrieval log, by the keys of its first object."""
    if file.suffix.lower() != ".jsonl":
        return False
    try:
        first = next((fields for _, fields in read_json_lines(file)), None)
    except SourceError:
        return False
    return isinstance(first, dict) and not _LOG_KEYS.isdisjoint(str(key).strip().lower() for key in first)
