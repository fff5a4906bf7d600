"""Digests of stored rows, which reveal a damaged row when it is read, and a missing row when its whole table is.

Every row of :data:`COLUMNS` carries the digest of its values. The table ``tally`` holds the number of rows of each table and the
sum of their digests. Both are written in the transaction that writes the rows.
"""

from __future__ import annotations

import marshal
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from struct import unpack
from typing import Any

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "meta": ("key", "value"),
    "instance": ("ordinal", "id", "condition", "body", "done", "basis"),
    "engine": ("id", "info"),
    "generation": (
        *("id", "instance", "step", "accepted", "request", "text", "finish_reason", "tokens", "prompt_tokens"),
        *("completion_tokens", "prefill_s", "decode_s", "peak_memory", "error", "calls", "active_memory"),
        *("cache_memory", "scores", "engine", "finished_at", "origin"),
    ),
    "verdict": (
        *("id", "generation", "judge", "accepted", "status", "label", "reason", "raw", "flags", "calls"),
        *("prompt_tokens", "completion_tokens", "judged_at", "behaviour"),
    ),
    "progress": ("condition", "total", "done", "errors", "truncated", "tokens", "seconds", "peak_memory", "reused"),
    "judged": ("condition", "judge", "labelled", "correct", "unparsed", "failed", "undecided"),
}
"""The columns that a row's digest covers, in order."""

_REAL = {"prefill_s", "decode_s", "finished_at", "judged_at", "seconds"}
"""The columns of type REAL, from which SQLite returns an integer as a float."""

COUNTED: Mapping[str, str] = {
    **{table: f"{table} r" for table in COLUMNS},
    "generation": "generation r WHERE r.accepted",
    "verdict": "verdict r JOIN generation g ON g.id = r.generation WHERE r.accepted AND g.accepted",
}
"""The rows that a tally counts: of answers and verdicts, only those that are not set aside."""

KEYS: Mapping[str, tuple[str, ...]] = {
    **{table: (columns[0],) for table, columns in COLUMNS.items()},
    "judged": ("condition", "judge"),
}
"""The primary key of each table."""

WRITE_DIGESTS = ";\n".join(
    [
        *(
            f"UPDATE {table} SET digest = row_digest('{table}', {', '.join(columns)})"
            for table, columns in COLUMNS.items()
        ),
        "DELETE FROM tally",
        *(
            f"INSERT INTO tally SELECT '{table}', count(*), coalesce(digest_sum(r.digest), 0) FROM {rows}"
            for table, rows in COUNTED.items()
        ),
    ]
)
"""The statements that write every row's digest and all tallies anew; they need :func:`register_functions`."""

Tally = tuple[int, int]
"""The number of rows, and the sum of their digests."""

EMPTY: Tally = (0, 0)

_LATER = ("generation", "judged", "progress", "verdict")
"""The tables whose last column came with a later version."""


def row_digest(table: str, values: tuple[Any, ...]) -> bytes:
    """Return the digest of a row's values as SQLite returns them; see :func:`as_stored`.

    Version 2 of marshal writes each value as a type code, a length if that varies, and the bytes. A test verifies that this is
    the same in every version of Python; it is ten times as fast as a JSON object by column. The last column of a
    table that got it later is covered only if it is not 0 or NULL, as in versions of the schema without that column.
    """
    if table in _LATER and not values[-1]:
        values = values[:-1]
    return sha256(marshal.dumps((table, values), 2)).digest()[:8]


def row_digests(table: str, rows: Sequence[tuple[Any, ...]]) -> list[bytes]:
    """Return :func:`row_digest` of each row without its last value, which is its stored digest."""
    if table in _LATER:
        return [row_digest(table, row[:-1]) for row in rows]
    return [sha256(marshal.dumps((table, row[:-1]), 2)).digest()[:8] for row in rows]


def as_stored(table: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a row's values in the order of its columns, as SQLite will return them."""
    values = [row[column] for column in COLUMNS[table]]
    for place, convert in _conversions(table, *map(type, values)):
        values[place] = convert(values[place])
    return tuple(values)


@lru_cache(1000)
def _conversions(table: str, *kinds: type) -> list[tuple[int, Callable[[Any], Any]]]:
    """Return the positions and conversions of values of these types that SQLite returns as another value."""
    conversions: list[tuple[int, Callable[[Any], Any]]] = []
    for place, (column, kind) in enumerate(zip(COLUMNS[table], kinds, strict=True)):
        if column in _REAL and issubclass(kind, int | float):
            conversions.append((place, _as_real))
        elif issubclass(kind, float):
            conversions.append((place, _as_number))
        elif issubclass(kind, int) and kind is not int:
            conversions.append((place, int))
    return conversions


def _as_real(value: float) -> float | None:
    return value + 0.0 if value == value else None  # SQLite has no NaN and no negative zero


def _as_number(value: float) -> float | int | None:
    return int(value) if value.is_integer() and abs(value) < 2**63 else _as_real(value)


def add(tally: Tally, digest: Any, by: int = 1) -> Tally:
    """Return a tally with a row's digest added ``by`` times; an invalid digest counts as a row with none."""
    amount = int.from_bytes(digest, "big") if isinstance(digest, bytes) else 0
    return merge(tally, (by, by * amount))


def merge(tally: Tally, other: Tally) -> Tally:
    """Return the sum of two tallies; digests are summed modulo 2**64, to fit SQLite's signed integers."""
    return tally[0] + other[0], (tally[1] + other[1] + 2**63) % 2**64 - 2**63


def tally_of(digests: Sequence[bytes]) -> Tally:
    """Return the tally of rows with these digests."""
    return merge(EMPTY, (len(digests), sum(unpack(f">{len(digests)}Q", b"".join(digests)))))


class _DigestSum:
    def __init__(self) -> None:
        self._tally: Tally = EMPTY

    def step(self, digest: Any) -> None:
        self._tally = add(self._tally, digest)

    def finalize(self) -> int:
        return self._tally[1]


def register_functions(connection: sqlite3.Connection) -> None:
    """Register the SQL functions of :data:`WRITE_DIGESTS` with a connection."""
    connection.create_function("row_digest", -1, lambda table, *row: row_digest(table, row), deterministic=True)
    connection.create_aggregate("digest_sum", 1, _DigestSum)


def tallies(rows: Sequence[Sequence[Any]]) -> dict[str, Tally]:
    """Return the tallies by name, from the rows of the table ``tally``."""
    return {str(name): (count, total) for name, count, total in rows if type(count) is type(total) is int}


def mismatches(counted: Mapping[str, Tally], stored: Mapping[str, Tally]) -> Iterator[str]:
    """Yield a phrase for each table whose rows do not match its tally."""
    for table, tally in counted.items():
        count = stored.get(table, EMPTY)[0]
        if tally != stored.get(table):
            yield f"table {table}: {tally[0]} of {count} rows" if tally[0] != count else f"table {table}: other rows"
