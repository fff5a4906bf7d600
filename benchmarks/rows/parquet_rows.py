"""Reader of Parquet files in a child process with limits; ``python -m benchmarks.rows.parquet_rows`` runs the child.

The sizes in a file are no bound: a page of a few bytes can unpack into gigabytes, whatever its header declares.
"""

from __future__ import annotations

import json
import os
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from benchmarks.rows.child_reader import ChildReader
from benchmarks.rows.reader_types import LARGEST_LINE, RowProblem
from benchmarks.untrusted.bounded_process import SECONDS, serve

UNPACKED = 2
"""The child's bytes of memory for each of the file. Writers put all images of a row group into one page, which unpacking holds
in memory twice."""

LARGEST_ROW = 60 * 1024 * 1024
"""The maximum size of a row with its images, in bytes."""

MOST_ROWS = 10_000_000
"""The maximum number of rows of a file, whose size does not bound it: equal rows take no space."""

LONG_ROW = f"the row is larger than {LARGEST_ROW // 1024**2} MiB"

_ROWS_AT_ONCE = 8
_BUFFER = 1 << 20
_reader = ChildReader("benchmarks.rows.parquet_rows", UNPACKED, SECONDS, "save it again in smaller groups of rows")


def parquet_rows(file: Path, name: str) -> Iterator[tuple[int, dict[str, Any] | RowProblem]]:
    """Yield the rows of a Parquet file, numbered from 1. Raises SourceError, whose message calls the file ``name``.

    Numbers, texts, lists, mappings and bytes keep their types; dates and other values become text.
    """
    for number, (fields, payload) in enumerate(_reader.messages(file, name), 1):
        yield number, _decoded(fields["row"], payload) if "row" in fields else RowProblem(LONG_ROW)


def _decoded(value: Any, payload: bytes) -> Any:
    """Return the value that :func:`_encoded` encoded."""
    if isinstance(value, list):
        return [_decoded(item, payload) for item in value]
    if not isinstance(value, dict):
        return value
    if "bytes" in value:
        start, end = value["bytes"]
        return payload[start:end]
    return {name: _decoded(item, payload) for name, item in value["fields"].items()}


def _encoded(value: Any, payload: bytearray) -> Any:
    """Return ``value`` as JSON, with mappings as ``{"fields": ...}`` and bytes as their position in ``payload``."""
    if isinstance(value, bytes):
        payload += value
        return {"bytes": [len(payload) - len(value), len(payload)]}
    if isinstance(value, dict):
        return {"fields": {str(name): _encoded(item, payload) for name, item in value.items()}}
    if isinstance(value, list | tuple):
        return [_encoded(item, payload) for item in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _shortest(value: Any, kind: Any) -> Any:
    """Return a value of pyarrow's type ``kind``, with numbers of 32 bits as written: 48.2, not 48.20000076293945."""
    from pyarrow import types as is_type

    if isinstance(value, float) and is_type.is_float32(kind):
        numbers = (float(f"{value:.{digits}g}") for digits in range(1, 10))
        return next((number for number in numbers if struct.pack("f", number) == struct.pack("f", value)), value)
    if isinstance(value, list) and (is_type.is_list(kind) or is_type.is_large_list(kind)):
        return [_shortest(item, kind.value_type) for item in value]
    if isinstance(value, dict) and is_type.is_struct(kind):
        return {field.name: _shortest(value.get(field.name), field.type) for field in kind}
    return value


def _prepare(request: dict[str, Any]) -> None:
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # the other allocators reserve more than they use
    import pyarrow.parquet  # noqa: F401


def _handle(request: dict[str, Any], file: IO[bytes] | None) -> Iterator[tuple[dict[str, Any], bytes]]:
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
        if table.metadata.num_rows > MOST_ROWS:
            yield {"error": f"has more than {MOST_ROWS:,} rows; save it as smaller files."}, b""
            return
        names = Counter(name.strip().lower() for name in table.schema_arrow.names)
        if repeated := next((name for name, count in names.items() if count > 1), ""):
            yield {"error": f"has two columns called {repeated[:80]!r}; rename one."}, b""
            return
        for batch in table.iter_batches(_ROWS_AT_ONCE, use_threads=False):
            for place in range(batch.num_rows):
                (row,) = batch.slice(place, 1).to_pylist()
                row = {field.name: _shortest(row[field.name], field.type) for field in batch.schema}
                payload = bytearray()
                fields = {"row": _encoded(row, payload)}
                if len(payload) > LARGEST_ROW or len(json.dumps(fields)) > LARGEST_LINE:
                    yield {"long": True}, b""
                else:
                    yield fields, bytes(payload)
    except MemoryError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, RecursionError) as error:
        yield {"error": f"is not a whole parquet file ({error.__class__.__name__}); download it again."}, b""


if __name__ == "__main__":
    serve(_handle, _prepare)
