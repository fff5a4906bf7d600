"""Tables of a user's own rows: the file, and the benchmark that is built from it."""

from __future__ import annotations

from pathlib import Path

from app.system.paths import typed_path
from benchmarks.base import Benchmark
from benchmarks.errors import SourceError
from benchmarks.registry import benchmark_names, get_benchmark


def table_path(text: str | Path) -> Path:
    """Return the absolute path of the table. Raises SourceError if it is not a file."""
    path = typed_path(str(text).strip())
    try:
        if path.is_file():
            return path
        folder = path.is_dir()
    except (OSError, ValueError):
        folder = False
    if folder:
        raise SourceError(f"{path} is a folder; name the table in it, such as {path / 'rows.csv'}.")
    raise SourceError(f"there is no file {path}; name a CSV, TSV or JSON-lines file of image, question and answer.")


def rows_benchmark() -> Benchmark:
    """Return the first benchmark that can be built from a table of rows."""
    return next(benchmark for name in benchmark_names() if (benchmark := get_benchmark(name)).rows_source)
