"""A table of a user's own rows: which file is meant, and what builds from it."""

from __future__ import annotations

from pathlib import Path

from app.system.paths import typed_path
from benchmarks.base import Benchmark, benchmark_names, get_benchmark
from benchmarks.errors import SourceError


def table_path(text: str | Path) -> Path:
    """The table that is meant, as an absolute path. Raises SourceError where it is no file."""
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
    """The first benchmark that is built from such a table."""
    return next(found for name in benchmark_names() if (found := get_benchmark(name)).rows_source)
