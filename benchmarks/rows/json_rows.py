"""Readers of rows in JSON: lists, objects that hold a list, and objects one behind the other. Their contents may be hostile."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeGuard

from benchmarks.errors import SourceError
from benchmarks.rows.nested_keys import plain_names
from benchmarks.rows.reader_types import LARGEST_LINE, RowProblem, open_source
from benchmarks.rows.table_header import are_usual_names
from benchmarks.rows.text_lines import LONG_LINE, in_one_encoding

LARGEST_JSON = 96 * 1024 * 1024
"""The maximum size of a file that is not read line by line, in bytes."""

MOST_VALUES = 4_000_000
"""The maximum number of values in such a file; all of it is held in memory."""

_BOM = b"\xef\xbb\xbf"
REPEATED_KEY = "a key is there twice; write each key once"

_ROWS_KEYS = ("data", "rows", "instances", "tests")
_BETWEEN = re.compile(r"[\s,\x1e]*")
_NEXT_OBJECT = re.compile(r"^\{", re.MULTILINE)


def read_json_lines(
    file: Path, convert: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield the values of a JSON Lines file's lines that are not blank, numbered from 1; ``convert`` makes their objects.

    A line that is not JSON gives None, a line that is too long a RowProblem. Raises SourceError if the file cannot be read.
    """
    with open_source(file) as lines:
        for number, line in enumerate(iter(lambda: lines.readline(LARGEST_LINE + 1), b""), 1):
            if len(line) > LARGEST_LINE:
                while line and not line.endswith(b"\n"):
                    line = lines.readline(LARGEST_LINE)
                yield number, RowProblem(LONG_LINE)
            elif line.strip():
                yield number, _parsed(line, convert)


def read_json_rows(file: Path, name: str) -> Iterator[tuple[int, Any]]:
    """Yield the numbered rows of a .json or .jsonl file, whichever of the two layouts it has; None for what is not JSON.

    The rows of a list are numbered from 1, others by the line in which they begin. Raises SourceError, whose message calls the
    file ``name``, if nothing in it is JSON.
    """
    for number, row in read_json_lines(file, _unique) if _is_line_by_line(file) else _whole(file, name):
        repeated = _Repeated.is_in(row) or (isinstance(row, dict) and len(plain_names(row)) < len(row))
        yield number, RowProblem(REPEATED_KEY) if repeated else row


class _Repeated(dict[str, Any]):
    """A JSON object in which a key, or one of an object that it holds, is there twice."""

    @staticmethod
    def is_in(value: object) -> bool:
        """Return whether a value is such an object."""
        return isinstance(value, _Repeated)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    return _Repeated(fields) if len(fields) < len(pairs) or any(map(_Repeated.is_in, fields.values())) else fields


def _is_line_by_line(file: Path) -> bool:
    """Return whether a file is read line by line: JSON Lines, unless its first line only opens a list or an object."""
    with open_source(file) as stream:
        stream.seek(0, 2)
        size = stream.tell()
        stream.seek(0)
        first = next((line for line in iter(lambda: stream.readline(LARGEST_LINE), b"") if line.strip()), b"")
    first = first.removeprefix(_BOM).strip()
    if file.suffix.lower() == ".jsonl":
        return first != b"{" and not first.startswith((b"[", b"\xff\xfe", b"\xfe\xff"))
    return size > LARGEST_JSON and isinstance(_parsed(first), dict)


def begins_with_list(file: Path) -> bool:
    """Return whether a file is a list, whose rows are numbered by their places and not by their lines."""
    with open_source(file) as stream:
        return stream.read(1024).removeprefix(_BOM).lstrip().startswith(b"[")


def _whole(file: Path, name: str) -> Iterator[tuple[int, Any]]:
    with open_source(file) as stream:
        data = stream.read(LARGEST_JSON + 1)
    if len(data) > LARGEST_JSON or data.count(b",") + data.count(b"[") + data.count(b"{") > MOST_VALUES:
        raise SourceError(
            f"{name} is larger than {LARGEST_JSON // 1024**2} MiB or has more than {MOST_VALUES // 10**6} million values; "
            "save it as JSON Lines (.jsonl), which is read line by line."
        )
    value = _parsed(data, _unique)
    if isinstance(value, dict):
        value = _rows_in(value, name)
    if isinstance(value, list) and any(isinstance(row, list) for row in value[:2]):
        raise _not_by_row(name)
    if isinstance(value, list):
        return enumerate(value, 1)
    text = _text(data)
    if all(row is None for _, row in _one_behind_the_other(text)):
        raise _no_rows(name)
    return _one_behind_the_other(text)


def _rows_in(value: dict[str, Any], name: str) -> list[Any]:
    """Return the list of rows that an object holds, or the object as the only row. Raises SourceError for several lists."""
    named = next((value[key] for key in _ROWS_KEYS if isinstance(value.get(key), list)), None)
    if _is_by_column(value):
        raise _not_by_row(name)
    if named is not None or are_usual_names(value):
        return [value] if named is None else named
    if rows := _rows_by_index(value):
        return rows
    if rows := _only_list(value, name):
        return rows
    objects = [inner for inner in value.values() if isinstance(inner, dict)]
    if not objects:
        raise _no_rows(name)
    held = (inner.get(key) for inner in objects for key in _ROWS_KEYS)
    return next((rows for rows in held if _are_rows(rows)), [value])


def _only_list(value: dict[str, Any], name: str) -> list[Any]:
    """Return the only list with rows in an object; an empty one if there is none. Raises SourceError for several."""
    lists = {
        key: inner
        for key, inner in value.items()
        if isinstance(inner, list) and any(isinstance(i, dict) for i in inner)
    }
    if len(lists) > 1:
        keys = ", ".join(repr(key[:40]) for key in list(lists)[:6])
        raise SourceError(f"{name} holds several lists of rows ({keys}); save one of them as a file of its own.")
    return next(iter(lists.values()), [])


def _rows_by_index(value: dict[str, Any]) -> list[Any]:
    """Return the rows that an object holds by an index; none if its values are no rows."""
    inners = list(value.values())
    if not inners or not all(isinstance(inner, dict) for inner in inners):
        return []
    return inners if are_usual_names(set(inners[0]).intersection(*inners)) else []


def _are_rows(rows: object) -> TypeGuard[list[Any]]:
    return isinstance(rows, list) and bool(rows) and isinstance(rows[0], dict) and are_usual_names(rows[0])


def _is_by_column(value: dict[str, Any]) -> bool:
    """Return whether an object holds a table by its columns: lists or objects of equal size under usual names."""
    columns = list(value.values())
    kinds = {type(column) for column in columns} - {_Repeated}
    return (
        are_usual_names(value)
        and kinds in ({list}, {dict})
        and len({len(column) for column in columns}) == 1
        and not any(are_usual_names(column) for column in columns if isinstance(column, dict))
    )


def _not_by_row(name: str) -> SourceError:
    return SourceError(
        f'{name} holds lists or columns, not a JSON object a row; pandas writes that with orient="records".'
    )


def _no_rows(name: str) -> SourceError:
    return SourceError(f"{name} holds no rows in JSON; save it as a list of objects, or as one object a line.")


def _one_behind_the_other(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the values of a text with their lines; behind one that is not JSON, the next begins with a line's brace."""
    decoder, place, line, counted = json.JSONDecoder(object_pairs_hook=_unique), 0, 1, 0
    while (place := _end(_BETWEEN, text, place)) < len(text):
        line, counted = line + text.count("\n", counted, place), place
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            value = None
            following = _NEXT_OBJECT.search(text, place + 1)
            place = following.start() if following else len(text)
        yield line, value


def _end(pattern: re.Pattern[str], text: str, place: int) -> int:
    match = pattern.match(text, place)
    return match.end() if match else place


def _parsed(data: bytes, convert: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Return the JSON value of ``data``; None if it is not JSON."""
    try:
        return json.loads(_text(data), object_pairs_hook=convert)
    except (ValueError, RecursionError):
        return None


def _text(data: bytes) -> str:
    encoding = json.detect_encoding(data)
    if encoding != "utf-8":
        return data.decode(encoding, "replace")
    text = data.decode(encoding, "surrogateescape")
    decoded = text if text.isascii() else in_one_encoding(text)
    return decoded if isinstance(decoded, str) else text
