"""A run's database: the connection, digests of its rows, and the values stored with the run."""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from app.store import connection as connections
from app.store.connection import DATABASE, StatementTimeLimit
from app.store.integrity import ownership, stored_meta, stored_values
from app.store.integrity.digests import (
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
from app.store.parsed_texts import ParsedTexts
from app.store.schema import LATER_COLUMNS, NO_DIGESTS, UNDIGESTED, is_readable, migrate, schema_version
from app.store.sqlite_errors import DamagedError, translate_errors
from benchmarks.errors import StoreError
from benchmarks.vocabulary import Generation, Instance, canonical_json

__all__ = ["DATABASE", "PAGE", "Database", "Row", "Values", "storable"]

PAGE = 256
"""The number of rows in memory at a time."""

_INSERT = {
    table: f"INSERT INTO {table} ({', '.join(columns)}, digest) VALUES ({', '.join('?' * (len(columns) + 1))})"
    for table, columns in COLUMNS.items()
}

_REQUIRED = ("spec", "identity", "created")
"""The meta keys that every run has."""

Row = dict[str, Any]
"""A complete row: the columns of :data:`app.store.integrity.digests.COLUMNS`, and ``digest`` as stored."""
Values = tuple[Any, ...]
"""The values of a :data:`Row`, in order."""
_T = TypeVar("_T")
_R = TypeVar("_R", Row, Values)


class Database:
    """A run's database, opened through :meth:`open` or :meth:`read`. Subclasses hold the SQL of its tables.

    Rows are read by :meth:`_stored`, which verifies their digests, and written with digests by :meth:`_write`.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._db = connection
        self._engine_id: int | None = None
        self._engines: dict[str, int] = {}  # the numbers of those that single answers named, by their JSON
        self.parsed_instances: ParsedTexts[Instance] | None = None
        """The instances that were parsed before, by their stored text; None to parse every one."""
        self._changes: dict[str, Tally] = {}
        register_functions(connection)
        with translate_errors(folder / DATABASE):
            self._watch = StatementTimeLimit(connection, connections.size(connection))
            version = schema_version(connection)
            self._has_digests = version > NO_DIGESTS
            later = (columns for since, columns in LATER_COLUMNS.items() if version < since)
            self._lacking = {column: value for columns in later for column, value in columns.items()}

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the run in ``folder`` for writing, and update its schema. Raises StoreError, ForeignRunError."""
        cls.require_own(folder)
        return cls._connect(folder)

    @classmethod
    def require_own(cls, folder: Path) -> None:
        """Raise ForeignRunError unless the run in ``folder`` was made on this machine."""
        with cls.read(folder) as run:
            if not run.own:
                raise ownership.ForeignRunError(folder)

    @property
    def own(self) -> bool:
        """Return whether the run was made on this machine, as its seal proves."""
        return ownership.is_own(self._sealed())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Open the run in ``folder`` read-only, even in a read-only folder. Raises StoreError.

        Nothing in the folder changes: a run of an earlier version is read from a private copy.
        """
        _must_exist(folder)
        with translate_errors(folder / DATABASE):
            connection = connections.open_read_only(folder)
            try:
                version = schema_version(connection)
                if version == 0:
                    raise StoreError(f"{folder} was never planned completely; remove it and start the run again.")
                if not is_readable(version):
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
        with translate_errors(folder / DATABASE):
            connection = connections.open_writable(folder)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                # On macOS, fsync leaves data in the drive's cache, and F_FULLFSYNC does not. Elsewhere this has no effect.
                connection.execute("PRAGMA fullfsync = ON")
                connection.execute("PRAGMA checkpoint_fullfsync = ON")
                connection.execute("PRAGMA foreign_keys = ON")
                migrate(connection)
                return cls(folder, connection)
            except BaseException:
                connection.close()
                raise

    def close(self) -> None:
        """Close the database. Unless another process is reading it, it becomes the single file ``run.sqlite``.

        Out of WAL mode it can be copied as one file, and read from a read-only folder.
        """
        with suppress(sqlite3.OperationalError):  # another reader, a read-only connection, or a full disk
            self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def copy_to(self, folder: Path) -> None:
        """Write a copy of the database as of one moment, even while a worker commits, to a folder that has none."""
        with self._explained(), closing(sqlite3.connect(folder / DATABASE)) as copy:
            self._db.backup(copy)

    def detach(self, values: Mapping[str, Any]) -> None:
        """Remove what holds on this machine alone, the seal and the path of the build, and rewrite the database.

        ``values`` replace those stored under the same keys. Equal contents then have equal bytes.
        """
        with self._transaction():
            for row in self._whole("meta"):
                if row["key"] == ownership.SEAL:
                    self._remove("meta", row)
                elif row["key"] == "data":
                    self._write("meta", {**row, "value": "null"}, row)
                elif row["key"] in values:
                    self._write("meta", {**row, "value": storable(canonical_json(values[row["key"]]))}, row)
        with self._explained():
            connections.rewrite(self._db)

    @property
    def undigested(self) -> int | None:
        """The number of answers that were stored before rows carried digests; None if all were written with one."""
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

    # --- rows and their digests ------------------------------------------------------------------

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

    # --- values stored with the run --------------------------------------------------------------

    def meta(self, key: str, default: Any = None) -> Any:
        """Return a JSON value stored with the run, such as "spec", "identity" or "created". Raises DamagedError."""
        row = self._meta_row(key)
        if row is None and default is None and key in _REQUIRED:
            raise DamagedError(self.folder, "table meta", f"{key!r} is missing")
        return (
            default if row is None else self._parsed("meta", row, lambda row: stored_meta.meta_value(key, row["value"]))
        )

    def _meta_row(self, key: str) -> Row | None:
        # All rows are read, so that a deleted value is not mistaken for one that was never stored.
        return next((row for row in self._whole("meta") if row["key"] == key), None)

    def set_meta(self, key: str, value: Any) -> None:
        """Store a JSON value with the run."""
        self.change_meta(key, lambda _: value)

    def change_meta(self, key: str, change: Callable[[Any], Any]) -> None:
        """Replace a stored value by ``change(value)`` in one transaction; the value is None if there is none."""
        with self._transaction():
            row = self._meta_row(key)
            self._store(key, change(None if row is None else self.meta(key)))

    def _store(self, key: str, value: Any) -> None:
        self._write("meta", {"key": key, "value": storable(canonical_json(value))}, self._meta_row(key))
        if key in ownership.SEALED:
            self._store(ownership.SEAL, ownership.seal(self._sealed()))

    def _sealed(self) -> dict[str, Any]:
        """Return the stored seal and the stored values that it covers."""
        names = (*ownership.SEALED, ownership.SEAL)
        return dict(self._rows(f"SELECT key, value FROM meta WHERE key IN ({', '.join('?' * len(names))})", names))

    # --- instances and answers -------------------------------------------------------------------

    def instance(self, row: Values) -> Instance:
        """Return the instance of a row. Raises DamagedError."""
        parsed = None if self.parsed_instances is None else self.parsed_instances.get(row[3])
        if parsed is not None:
            self.check_instance(row, parsed)
            return parsed
        parsed = self._parsed("instance", row, stored_values.instance)
        if self.parsed_instances is not None:
            self.parsed_instances.add(row[3], parsed)
        return parsed

    def check_instance(self, row: Values, parsed: Instance) -> None:
        """Raise DamagedError unless a row fits an instance that was parsed from the same body."""
        self._parsed("instance", row, lambda row: stored_values.check_instance(row, parsed.id, parsed.condition))

    def _generation_rows(
        self,
        names: Mapping[int, Any],
        *,
        ids: dict[int, int] | None = None,
        tally: dict[str, Tally] | None = None,
    ) -> dict[int, list[Values]]:
        """Return the rows of instances' accepted answers by ordinal, in order of step; ``names`` maps ordinals to ids.

        ``ids`` is filled with the ordinal of each answer's id.
        """
        answers: dict[int, list[Values]] = defaultdict(list)
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
                raise self.damaged("generation", row, f"it is step {step} where {len(earlier)} belongs")
            earlier.append(row)
        return answers

    def _generations(self, names: Mapping[int, Any]) -> dict[int, list[Generation]]:
        """Return the accepted answers of instances by ordinal, in order of step; ``names`` maps ordinals to instance ids."""
        return {
            ordinal: self._parse_generations(str(names.get(ordinal)), rows)
            for ordinal, rows in self._generation_rows(names).items()
        }

    def _parse_generations(self, instance_id: str, rows: Sequence[Values]) -> list[Generation]:
        read = partial(stored_values.generation, instance_id)
        return [self._parsed("generation", row, read) for row in rows]


def _must_exist(folder: Path) -> None:
    if not os.path.lexists(folder / DATABASE):
        raise StoreError(f"{folder} is not a run: it has no {DATABASE}; `rashomon runs` lists the runs there are.")


def storable(text: str) -> str:
    """Return ``text`` with lone surrogates, which UTF-8 cannot encode, as visible escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
