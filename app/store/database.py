"""Database: the connection to a run's database, and the values kept with the run."""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from app.store import connection as connections
from app.store.connection import DATABASE, StatementTimeLimit
from app.store.integrity import ownership, stored_values
from app.store.integrity.digests import (
    COLUMNS,
    KEYS,
    NONE,
    Tally,
    add,
    as_stored,
    joined,
    missing,
    row_digest,
    tallies,
    tally_of,
    teach,
)
from app.store.schema import MIGRATIONS, NO_DIGESTS, UNDIGESTED, migrate, schema_version
from app.store.sqlite_errors import DamagedError, explained
from benchmarks.base import Generation, Instance, canonical_json
from benchmarks.errors import StoreError

__all__ = ["DATABASE", "PAGE", "Database", "Row", "storable"]

PAGE = 256
"""Rows in memory at a time."""

_INSERT = {
    table: f"INSERT INTO {table} ({', '.join(columns)}, digest) VALUES ({', '.join('?' * (len(columns) + 1))})"
    for table, columns in COLUMNS.items()
}

_REQUIRED = ("spec", "identity", "created")
"""The values without which a run is none."""

Row = dict[str, Any]
"""A row that was read whole: the columns of :data:`app.store.integrity.digests.COLUMNS`, and ``digest`` as it is stored."""
Values = tuple[Any, ...]
"""The values of a :data:`Row` in their order."""
_T = TypeVar("_T")
_R = TypeVar("_R", Row, Values)


class Database:
    """One run's database, opened through :meth:`open` or :meth:`read`; the SQL of its tables is in the classes on top of it.

    Rows are read by :meth:`_stored`, which compares them with their digests, and written with these.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._db = connection
        self._engine_id: int | None = None
        self._changes: dict[str, Tally] = {}
        teach(connection)
        with explained(folder / DATABASE):
            self._watch = StatementTimeLimit(connection, connections.size(connection))
            self._has_digests = schema_version(connection) > NO_DIGESTS

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The run in ``folder``, to be written; brings its schema up to date. Raises StoreError, ForeignRunError."""
        cls.require_own(folder)
        return cls._connect(folder)

    @classmethod
    def require_own(cls, folder: Path) -> None:
        """Raise ForeignRunError unless this machine has made the run in ``folder``."""
        with cls.read(folder) as run:
            if not run.own:
                raise ownership.ForeignRunError(folder)

    @property
    def own(self) -> bool:
        """Return whether this machine has made the run: its seal is right."""
        return ownership.is_own(self._sealed())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The run in ``folder``, read only, also from a folder that cannot be written. Raises StoreError.

        Nothing in the folder changes: a run of an earlier version is read from a private copy.
        """
        _must_exist(folder)
        with explained(folder / DATABASE):
            connection = connections.open_read_only(folder)
            try:
                version = schema_version(connection)
                if version == 0:
                    raise StoreError(f"{folder} was never planned to the end; remove it and start its run again.")
                if version not in (NO_DIGESTS, len(MIGRATIONS)):
                    connection, original = connections.open_copy(connection), connection
                    original.close()
                    migrate(connection, NO_DIGESTS if version < NO_DIGESTS else None)
                connection.execute("PRAGMA query_only = ON")
                return cls(folder, connection)
            except BaseException:
                connection.close()
                raise

    @classmethod
    def _connect(cls, folder: Path) -> Self:
        with explained(folder / DATABASE):
            connection = connections.open_writable(folder)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                # On macOS fsync leaves data in the drive's cache; F_FULLFSYNC does not. Elsewhere this does nothing.
                connection.execute("PRAGMA fullfsync = ON")
                connection.execute("PRAGMA checkpoint_fullfsync = ON")
                connection.execute("PRAGMA foreign_keys = ON")
                migrate(connection)
                return cls(folder, connection)
            except BaseException:
                connection.close()
                raise

    def close(self) -> None:
        """Close the database. Unless somebody is reading it, it becomes the one file ``run.sqlite``.

        Out of WAL mode it can be copied as one file and read from a folder that cannot be written.
        """
        with suppress(sqlite3.OperationalError):  # a reader, a read-only connection, or a full disk: it stays as it is
            self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def undigested(self) -> int | None:
        """How many answers were there before rows carried digests; None where each carries its own since it was written."""
        if self._has_digests:
            count: int | None = self.meta(UNDIGESTED)
            return count
        return self._ids("SELECT count(*) FROM generation")[0]

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
        """Have what is read inside be of one moment."""
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
        with explained(self.folder / DATABASE, lambda: self._watch.is_over):
            yield

    def _rows(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        with self._explained():
            self._watch.start()
            try:
                return self._db.execute(sql, values).fetchall()
            except sqlite3.OperationalError as error:
                if self._db.text_factory is not str or hasattr(error, "sqlite_errorcode"):
                    raise
                # Not SQLite's own error, so a text that is no UTF-8: whoever reads its row says which.
                self._db.text_factory = connections.lenient_text
                return self._db.execute(sql, values).fetchall()
            finally:
                self._watch.stop()

    # --- rows and their digests ------------------------------------------------------------------

    def _stored(
        self, table: str, rest: str = "", values: Sequence[Any] = (), *, tally: dict[str, Tally] | None = None
    ) -> list[Row]:
        """Read rows as :meth:`_values` does, by the names of their columns."""
        names = (*COLUMNS[table], "digest")
        return [dict(zip(names, row, strict=True)) for row in self._values(table, rest, values, tally=tally)]

    def _values(
        self, table: str, rest: str = "", values: Sequence[Any] = (), *, tally: dict[str, Tally] | None = None
    ) -> list[Values]:
        """Read whole rows of ``table``, which is ``r`` in the ``rest`` of the query, each compared with its digest.

        They are added to ``tally``. Raises DamagedError, also for values that are of other types than their columns.
        """
        digest = "r.digest" if self._has_digests else "NULL"
        columns = ", ".join(f"r.{column}" for column in COLUMNS[table])
        rows: list[Values] = self._rows(f"SELECT {columns}, {digest} FROM {table} r {rest}", values)
        if self._has_digests:
            for row in rows:
                if row_digest(table, row[:-1]) != row[-1]:
                    raise self._damaged(table, row, "its values are not those that were written")
            if tally is not None:
                tally[table] = joined(tally.get(table, NONE), tally_of([row[-1] for row in rows]))
        try:
            stored_values.check(table, rows)
        except ValueError:
            for row in rows:
                self._parsed(table, row, lambda row: stored_values.check(table, [row]))
        return rows

    def _parsed(self, table: str, row: _R, read: Callable[[_R], _T]) -> _T:
        """Return what ``read`` makes of a row. Raises DamagedError for the ValueError of a parser."""
        try:
            return read(row)
        except ValueError as error:
            raise self._damaged(table, row, str(error)) from error

    def _damaged(self, table: str, row: Row | Values, why: str) -> DamagedError:
        named = row if isinstance(row, dict) else dict(zip(COLUMNS[table], row, strict=False))
        key = ", ".join(f"{named.get(column)!r:.60}" for column in KEYS[table])
        return DamagedError(self.folder, f"table {table}, row {key}", why)

    def _compare(self, seen: Mapping[str, Tally], kept: Mapping[str, Tally]) -> None:
        """Raise DamagedError where the rows that were read of whole tables are not all that were written."""
        for problem in missing(seen, kept) if self._has_digests else ():
            table, _, why = problem.partition(": ")
            raise DamagedError(self.folder, table, f"{why} are there")

    def _tallies(self) -> dict[str, Tally]:
        """Return how many rows of each table there should be, with the sums of their digests."""
        kept = tallies(self._rows("SELECT name, rows, total FROM tally")) if self._has_digests else {}
        return kept | {table: joined(kept.get(table, NONE), change) for table, change in self._changes.items()}

    def _whole(self, table: str) -> list[Row]:
        """Read all rows of a small table; none is missing. Raises DamagedError."""
        with self._snapshot():
            seen: dict[str, Tally] = {table: NONE}
            rows = self._stored(table, tally=seen)
            self._compare(seen, self._tallies())
            return rows

    def _ids(self, sql: str, values: Sequence[Any] = ()) -> list[int]:
        return [row[0] for row in self._rows(sql, values)]

    def _last(self, rows: Sequence[Values], before: int) -> int:
        """The ordinal of the last of a page of instances, which ascend from ``before``: else reading would not end."""
        for row in rows:
            if row[0] <= before:
                raise self._damaged("instance", row, f"it comes after row {before}")
            before = row[0]
        return before

    def _change(
        self, table: str, ids: Sequence[int], *, counted: tuple[bool, bool] = (True, True), **changes: int
    ) -> None:
        """Change columns of the rows of these ids, which are as they were written; see :meth:`_write`."""
        (key,) = KEYS[table]
        for start in range(0, len(ids), PAGE):
            page = ids[start : start + PAGE]
            for row in self._stored(table, f"WHERE r.{key} IN ({', '.join('?' * len(page))})", page):
                self._write(table, {**row, **changes}, row, counted=counted)

    def _write(
        self, table: str, row: Row, before: Row | None = None, *, counted: tuple[bool, bool] = (True, True)
    ) -> None:
        """Write a whole row with its digest, in place of ``before``; in a transaction.

        ``counted``: whether the row counted in the table's tally before, and does now.
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
        """Remove a row and count it out; in a transaction."""
        where = " AND ".join(f"{column} = ?" for column in KEYS[table])
        self._db.execute(f"DELETE FROM {table} WHERE {where}", [row[column] for column in KEYS[table]])
        self._count(table, row["digest"], -1)

    def _count(self, table: str, digest: bytes, by: int = 1) -> None:
        self._changes[table] = add(self._changes.get(table, NONE), digest, by)

    def _write_tallies(self) -> None:
        kept = self._tallies()
        self._db.executemany(
            "INSERT OR REPLACE INTO tally VALUES (?, ?, ?)", [(table, *kept[table]) for table in self._changes]
        )
        self._changes = {}

    # --- values kept with the run ----------------------------------------------------------------

    def meta(self, key: str, default: Any = None) -> Any:
        """A value kept with the run, as JSON: "spec", "identity", "data", "created" ... Raises DamagedError."""
        row = self._meta_row(key)
        if row is None and default is None and key in _REQUIRED:
            raise DamagedError(self.folder, "table meta", f"{key!r} is missing")
        return (
            default
            if row is None
            else self._parsed("meta", row, lambda row: stored_values.meta_value(key, row["value"]))
        )

    def _meta_row(self, key: str) -> Row | None:
        # All of them are read, so that one that is missing is not taken for one that was never there.
        return next((row for row in self._whole("meta") if row["key"] == key), None)

    def set_meta(self, key: str, value: Any) -> None:
        """Keep a JSON value with the run."""
        self.change_meta(key, lambda _: value)

    def change_meta(self, key: str, change: Callable[[Any], Any]) -> None:
        """Replace a value by what ``change`` makes of it (of None where there is none), in one transaction."""
        with self._transaction():
            row = self._meta_row(key)
            self._store(key, change(None if row is None else self.meta(key)))

    def _store(self, key: str, value: Any) -> None:
        self._write("meta", {"key": key, "value": storable(canonical_json(value))}, self._meta_row(key))
        if key in ownership.SEALED:
            self._store(ownership.SEAL, ownership.seal(self._sealed()))

    def _sealed(self) -> dict[str, Any]:
        """The seal, and what it covers, as stored."""
        names = (*ownership.SEALED, ownership.SEAL)
        return dict(self._rows(f"SELECT key, value FROM meta WHERE key IN ({', '.join('?' * len(names))})", names))

    # --- instances and answers -------------------------------------------------------------------

    def _instance(self, row: Values) -> Instance:
        return self._parsed("instance", row, stored_values.instance)

    def _generations(
        self,
        names: Mapping[int, Any],
        *,
        ids: dict[int, int] | None = None,
        tally: dict[str, Tally] | None = None,
    ) -> dict[int, list[Generation]]:
        """The accepted answers of instances, which are named by ordinal, in order of step.

        ``ids`` gets the ordinal of the instance that each answer's id belongs to.
        """
        answers: dict[int, list[Generation]] = defaultdict(list)
        for row in self._values(
            "generation",
            f"WHERE r.accepted AND r.instance IN ({', '.join('?' * len(names))}) ORDER BY r.instance, r.step",
            tuple(names),
            tally=tally,
        ):
            number, ordinal, step = row[:3]
            if ids is not None:
                ids[number] = ordinal
            earlier = answers[ordinal]
            if step != len(earlier):
                raise self._damaged("generation", row, f"it is step {step} where {len(earlier)} belongs")
            earlier.append(self._parsed("generation", row, partial(stored_values.generation, str(names.get(ordinal)))))
        return answers


def _must_exist(folder: Path) -> None:
    if not os.path.lexists(folder / DATABASE):
        raise StoreError(f"{folder} is not a run: it has no {DATABASE}; `rashomon runs` lists the runs there are.")


def storable(text: str) -> str:
    # SQLite stores UTF-8; a lone surrogate has none and becomes its visible escape.
    return text.encode("utf-8", "backslashreplace").decode()
