"""A run's database: how it is opened, the values stored with the run, and its instances and answers."""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

from app.store import database_connection as connections
from app.store.database_connection import DATABASE
from app.store.database_schema import NO_DIGESTS, UNDIGESTED, is_readable, migrate, schema_version
from app.store.integrity import run_ownership, stored_meta, stored_values
from app.store.integrity.row_digests import Tally
from app.store.parsed_texts import ParsedTexts
from app.store.sqlite_errors import DamagedError, translate_errors
from app.store.verified_rows import Row, Values, VerifiedRows
from benchmarks.errors import StoreError
from benchmarks.vocabulary import Generation, Instance, canonical_json

__all__ = ["DATABASE", "Database", "storable"]

_REQUIRED = ("spec", "identity", "created")
"""The meta keys that every run has."""


class Database(VerifiedRows):
    """A run's database, opened through :meth:`open` or :meth:`read`. Subclasses hold the SQL of its tables."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        super().__init__(folder, connection)
        self._engine_id: int | None = None
        self._engines: dict[str, int] = {}  # the numbers of those that single answers named, by their JSON
        self.parsed_instances: ParsedTexts[Instance] | None = None
        """The instances that were parsed before, by their stored text; None to parse every one."""

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
                raise run_ownership.ForeignRunError(folder)

    @property
    def own(self) -> bool:
        """Return whether the run was made on this machine, as its seal proves."""
        return run_ownership.is_own(self._sealed())

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
                if schema_version(connection) == 0:  # a new run, which is no run before it is filled and synced
                    connection.execute("PRAGMA synchronous = OFF")
                migrate(connection)
                connection.execute("PRAGMA synchronous = FULL")
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
                if row["key"] == run_ownership.SEAL:
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

    def set_meta(self, key: str, value: Any, *, durable: bool = True) -> None:
        """Store a JSON value with the run; otherwise as :meth:`change_meta`."""
        self.change_meta(key, lambda _: value, durable=durable)

    def change_meta(self, key: str, change: Callable[[Any], Any], *, durable: bool = True) -> None:
        """Replace a stored value by ``change(value)`` in one transaction; the value is None if there is none.

        A change that is not ``durable`` is so only once something else that is stored afterwards is.
        """
        with nullcontext() if durable else self._not_synced(), self._transaction():
            row = self._meta_row(key)
            self._store(key, change(None if row is None else self.meta(key)))

    @contextmanager
    def _not_synced(self) -> Iterator[None]:
        with self._explained():
            self._db.execute("PRAGMA synchronous = NORMAL")
            try:
                yield
            finally:
                self._db.execute("PRAGMA synchronous = FULL")

    def _store(self, key: str, value: Any) -> None:
        self._write("meta", {"key": key, "value": storable(canonical_json(value))}, self._meta_row(key))
        if key in run_ownership.SEALED:
            self._store(run_ownership.SEAL, run_ownership.seal(self._sealed()))

    def _sealed(self) -> dict[str, Any]:
        """Return the stored seal and the stored values that it covers."""
        names = (*run_ownership.SEALED, run_ownership.SEAL)
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
