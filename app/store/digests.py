"""Digests of stored rows: damage to a run's database is noticed when a row is read, and a missing row when all are.

Every row of :data:`COLUMNS` carries the digest of its values. The table ``tally`` keeps, for what is read as a whole, the
number of rows and the sum of their digests. Both are written in the transaction that writes the rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "meta": ("key", "value"),
    "instance": ("ordinal", "id", "condition", "body", "done", "basis"),
    "engine": ("id", "info"),
    "generation": (
        *("id", "instance", "step", "accepted", "request", "text", "finish_reason", "tokens", "prompt_tokens"),
        *("completion_tokens", "prefill_s", "decode_s", "peak_memory", "error", "calls", "active_memory"),
        *("cache_memory", "scores", "engine", "finished_at"),
    ),
    "verdict": (
        *("id", "generation", "judge", "accepted", "status", "label", "reason", "raw", "flags", "calls"),
        *("prompt_tokens", "completion_tokens", "judged_at"),
    ),
    "progress": ("condition", "total", "done", "errors", "truncated", "tokens", "seconds", "peak_memory"),
    "judged": ("condition", "judge", "labelled", "correct", "unparsed", "failed"),
}
"""The columns that a row's digest covers, in its order."""

COUNTED: Mapping[str, str] = {
    **{table: f"{table} r" for table in COLUMNS},
    "generation": "generation r WHERE r.accepted",
    "verdict": "verdict r JOIN generation g ON g.id = r.generation WHERE r.accepted AND g.accepted",
}
"""The rows that a tally counts: of answers and verdicts those that are not set aside."""

KEYS: Mapping[str, tuple[str, ...]] = {
    **{table: (columns[0],) for table, columns in COLUMNS.items()},
    "judged": ("condition", "judge"),
}
"""The columns that name a row."""

SEAL = ";\n".join(
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
"""Gives every row its digest and counts all anew, whatever was there; on a connection that :func:`teach` has taught."""

Tally = tuple[int, int]
"""How many rows, and the sum of their digests."""

NONE: Tally = (0, 0)


def row_digest(table: str, *values: Any) -> bytes:
    """Return the digest of a row: equal for equal values, however SQLite stores their numbers."""
    parts = [table]
    for value in values:
        kind = type(value)
        if kind is str:
            parts += (f";t{len(value)}:", value)
        elif value is None or value != value:  # SQLite stores no NaN
            parts.append(";n")
        elif kind is bytes:
            parts.append(f";b{value.hex()}")
        elif kind is float and not value.is_integer():
            parts.append(f";r{value!r}")
        else:
            parts.append(f";i{int(value)}")  # in a REAL column 1 is read as 1.0
    return blake2b("".join(parts).encode("utf-8", "surrogateescape"), digest_size=8).digest()


def add(tally: Tally, digest: Any, by: int = 1) -> Tally:
    """Return a tally with a row's digest added ``by`` times. What is no digest counts as a row with none."""
    amount = int.from_bytes(digest, "big") if isinstance(digest, bytes) else 0
    return joined(tally, (by, by * amount))


def joined(tally: Tally, more: Tally) -> Tally:
    """Return the tally of the rows of both. The sum is taken modulo 2**64, as SQLite's integers have it."""
    return tally[0] + more[0], (tally[1] + more[1] + 2**63) % 2**64 - 2**63


class _DigestSum:
    def __init__(self) -> None:
        self._tally: Tally = NONE

    def step(self, digest: Any) -> None:
        self._tally = add(self._tally, digest)

    def finalize(self) -> int:
        return self._tally[1]


def teach(connection: sqlite3.Connection) -> None:
    """Make the SQL functions of :data:`SEAL` known to a connection."""
    connection.create_function("row_digest", -1, row_digest, deterministic=True)
    connection.create_aggregate("digest_sum", 1, _DigestSum)


def seal(connection: sqlite3.Connection) -> None:
    """Carry out :data:`SEAL`."""
    for statement in SEAL.split(";\n"):
        connection.execute(statement)


def tallies(rows: Sequence[Sequence[Any]]) -> dict[str, Tally]:
    """Return the rows of the table ``tally`` by name."""
    return {str(name): (count, total) for name, count, total in rows}


def missing(seen: Mapping[str, Tally], kept: Mapping[str, Tally]) -> Iterator[str]:
    """Yield what is wrong with the rows seen of each table, a phrase for each that is not as its tally says."""
    for table, tally in seen.items():
        count = kept.get(table, NONE)[0]
        if tally != kept.get(table):
            yield f"table {table}: {tally[0]} of {count} rows" if tally[0] != count else f"table {table}: other rows"
