"""Rows of a run's database, read with their digests verified and written with digests."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from app.store import database_connection as connections
from app.store.database_connection import DATABASE, StatementTimeLimit
from app.store.database_schema import LATER_COLUMNS, NO_DIGESTS, schema_version
from app.store.integrity import stored_values
from app.store.integrity.row_digests import (
    COLUMNS,
    EMPTY,
    KEYS,
    Tally,
    add,
    as_stored,
    merge,
    mismatches,
    register_functions,
    row_digest,
    row_digests,
    tallies,
    tally_of,
)
from app.store.sqlite_errors import DamagedError, translate_errors

PAGE = 256
"""The number of rows in memory at a time."""

_INSERT = {
    table: f"INSERT INTO {table} ({', '.join(columns)}, digest) VALUES ({', '.join('?' * (len(columns) + 1))})"
    for table, columns in COLUMNS.items()
}

Row = dict[str, Any]
"""A complete row: the columns of :data:`app.store.integrity.row_digests.COLUMNS`, and ``digest`` as stored."""
Values = tuple[Any, ...]
"""The values of a :data:`Row`, in order."""
_T = TypeVar("_T")
_R = TypeVar("_R", Row, Values)


class VerifiedRows:
    """A connection to a run's database, whose rows carry digests.

    Rows are read by :meth:`_stored`, which verifies their digests, and written with digests by :meth:`_write`.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._db = connection
        self._changes: dict[str, Tally] = {}
        register_functions(connection)
        with translate_errors(folder / DATABASE):
            self._watch = StatementTimeLimit(connection, connections.size(connection))
            version = schema_version(connection)
            self._has_digests = version > NO_DIGESTS
            later = (columns for since, columns in LATER_COLUMNS.items() if version < since)
            self._lacking = {column: value for columns in later for column, value in columns.items()}

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._explained():
            self._watch.stop()
            self._db.execute("BEGIN IMMEDIATE")
            self._changes = {}
            try:
                yield
                self._write_tallies()
                self._db.execute("COMMIT")
            except BaseException:
                self._changes = {}
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Read everything in the block from one snapshot."""
        if self._db.in_transaction:
            yield
            return
        with self._explained():
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        with translate_errors(self.folder / DATABASE, lambda: self._watch.is_over):
            yield

    def _rows(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        with self._explained():
            self._watch.start()
            try:
                return self._db.execute(sql, values).fetchall()
            except sqlite3.OperationalError as error:
                if self._db.text_factory is not str or hasattr(error, "sqlite_errorcode"):
                    raise
                # An error without SQLite's code means a text that is not UTF-8; reading its row reports which.
                self._db.text_factory = connections.lenient_text
                return self._db.execute(sql, values).fetchall()
            finally:
                self._watch.stop()

    def _streamed(self, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> Iterator[Any]:
        """Yield the rows of a query that may be too many to hold; nothing else may be read meanwhile."""
        with self._explained():
            self._watch.start()
            try:
                yield from self._db.execute(sql, values)
            finally:
                self._watch.stop()

    def _stored(
        self, table: str, rest: str = "", values: Sequence[Any] = (), *, tally: dict[str, Tally] | None = None
    ) -> list[Row]:
        """Read rows like :meth:`_values`, as mappings by column name."""
        names = (*COLUMNS[table], "digest")
        return [dict(zip(names, row, strict=True)) for row in self._values(table, rest, values, tally=tally)]

    def _values(
        self, table: str, rest: str = "", values: Sequence[Any] = (), *, tally: dict[str, Tally] | None = None
    ) -> list[Values]:
        """Read complete rows of ``table``, named ``r`` in the ``rest`` of the query, and verify their digests.

        The rows are added to ``tally``. Raises DamagedError for a wrong digest, or a value of the wrong type.
        """
        stored_digest = "r.digest" if self._has_digests else "NULL"
        columns = ", ".join(self._lacking.get(column, f"r.{column}") for column in COLUMNS[table])
        rows: list[Values] = self._rows(f"SELECT {columns}, {stored_digest} FROM {table} r {rest}", values)
        if self._has_digests:
            for row, digest in zip(rows, row_digests(table, rows), strict=True):
                if digest != row[-1]:
                    raise self.damaged(table, row, "its values are not those that were written")
            if tally is not None:
                tally[table] = merge(tally.get(table, EMPTY), tally_of([row[-1] for row in rows]))
        try:
            stored_values.check(table, rows)
        except ValueError:
            for row in rows:
                self._parsed(table, row, lambda row: stored_values.check(table, [row]))
        return rows

    def _parsed(self, table: str, row: _R, read: Callable[[_R], _T]) -> _T:
        """Return ``read(row)``. Raises DamagedError in place of the parser's ValueError."""
        try:
            return read(row)
        except ValueError as error:
            raise self.damaged(table, row, str(error)) from error

    def damaged(self, table: str, row: Row | Values, why: str) -> DamagedError:
        """Return the error for a damaged row, which it names."""
        values_by_column = row if isinstance(row, dict) else dict(zip(COLUMNS[table], row, strict=False))
        key = ", ".join(f"{values_by_column.get(column)!r:.60}" for column in KEYS[table])
        return DamagedError(self.folder, f"table {table}, row {key}", why)

    def _compare(self, counted: Mapping[str, Tally], stored: Mapping[str, Tally]) -> None:
        """Raise DamagedError if complete reads of tables did not return all rows that were written."""
        for problem in mismatches(counted, stored) if self._has_digests else ():
            table, _, why = problem.partition(": ")
            raise DamagedError(self.folder, table, f"{why} are there")

    def _tallies(self) -> dict[str, Tally]:
        """Return the expected number of rows of each table, with the sums of their digests."""
        stored_tallies = tallies(self._rows("SELECT name, rows, total FROM tally")) if self._has_digests else {}
        return stored_tallies | {
            table: merge(stored_tallies.get(table, EMPTY), change) for table, change in self._changes.items()
        }

    def _whole(self, table: str) -> list[Row]:
        """Read all rows of a small table. Raises DamagedError if any is damaged or missing."""
        with self._snapshot():
            seen: dict[str, Tally] = {table: EMPTY}
            rows = self._stored(table, tally=seen)
            self._compare(seen, self._tallies())
            return rows

    def _ids(self, sql: str, values: Sequence[Any] = ()) -> list[int]:
        return [row[0] for row in self._rows(sql, values)]

    def _last(self, rows: Sequence[Values], before: int) -> int:
        """Return the last ordinal in a page of instances; they must ascend from ``before``, or reading would not end."""
        for row in rows:
            if row[0] <= before:
                raise self.damaged("instance", row, f"it comes after row {before}")
            before = row[0]
        return before

    def _change(
        self, table: str, ids: Sequence[int], *, counted: tuple[bool, bool] = (True, True), **changes: int
    ) -> None:
        """Change columns of the rows with these ids, after verifying them; see :meth:`_write`."""
        (key,) = KEYS[table]
        for start in range(0, len(ids), PAGE):
            page = ids[start : start + PAGE]
            for row in self._stored(table, f"WHERE r.{key} IN ({', '.join('?' * len(page))})", page):
                self._write(table, {**row, **changes}, row, counted=counted)

    def _write(
        self, table: str, row: Row, before: Row | None = None, *, counted: tuple[bool, bool] = (True, True)
    ) -> None:
        """Write a complete row with its digest, in place of ``before``; to be called in a transaction.

        ``counted`` tells whether the row was in the table's tally before, and whether it is now.
        """
        values = as_stored(table, row)
        digest = row_digest(table, values)
        if before is None:
            self._db.execute(_INSERT[table], (*values, digest))
        else:
            changed = [
                (column, value) for column, value in zip(COLUMNS[table], values, strict=True) if value != before[column]
            ]
            changes = "".join(f"{column} = ?, " for column, _ in changed)
            where = " AND ".join(f"{column} = ?" for column in KEYS[table])
            keys = map(before.__getitem__, KEYS[table])
            self._db.execute(
                f"UPDATE {table} SET {changes}digest = ? WHERE {where}",
                (*(value for _, value in changed), digest, *keys),
            )
            if counted[0]:
                self._count(table, before["digest"], -1)
        if counted[1]:
            self._count(table, digest)

    def _remove(self, table: str, row: Row) -> None:
        """Remove a row, also from the tally; to be called in a transaction."""
        where = " AND ".join(f"{column} = ?" for column in KEYS[table])
        self._db.execute(f"DELETE FROM {table} WHERE {where}", [row[column] for column in KEYS[table]])
        self._count(table, row["digest"], -1)

    def _count(self, table: str, digest: bytes, by: int = 1) -> None:
        self._changes[table] = add(self._changes.get(table, EMPTY), digest, by)

    def _write_tallies(self) -> None:
        stored_tallies = self._tallies()
        self._db.executemany(
            "INSERT OR REPLACE INTO tally VALUES (?, ?, ?)",
            [(table, *stored_tallies[table]) for table in self._changes],
        )
        self._changes = {}
