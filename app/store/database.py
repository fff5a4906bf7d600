"""Database: the connection to a run's database, and the values kept with the run."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from app.store import ownership
from app.store.failure import explained
from app.store.schema import MIGRATIONS, migrate, schema_version
from benchmarks.base import Generation, canonical_json
from benchmarks.errors import StoreError

DATABASE = "run.sqlite"
PAGE = 256
"""Rows in memory at a time."""


class Database:
    """One run's database, opened through :meth:`open` or :meth:`read`; the SQL of its tables is in the classes on top of it."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._db = connection
        self._engine_id: int | None = None

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
        """Whether this machine has made the run: its seal is right."""
        return ownership.is_own(self._sealed())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The run in ``folder``, read only, also from a folder that cannot be written. Raises StoreError."""
        path = _must_exist(folder)
        with explained(path):
            try:
                connection = _read_only(path, "mode=ro")
            except sqlite3.OperationalError:
                # In a folder that cannot be written a database in WAL mode opens only as immutable, which leaves its
                # log unread: right if that is empty.
                if _size(path.with_name(path.name + "-wal")):
                    raise
                connection = _read_only(path, "immutable=1")
            version = schema_version(connection)
        if 0 < version < len(MIGRATIONS):
            connection.close()
            cls._connect(folder).close()
            return cls.read(folder)
        if version == 0:
            raise StoreError(f"{folder} was never planned to the end; remove it and start its run again.")
        return cls(folder, connection)

    @classmethod
    def _connect(cls, folder: Path) -> Self:
        with explained(folder / DATABASE):
            connection = sqlite3.connect(folder / DATABASE, isolation_level=None, timeout=30)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            # On macOS fsync leaves data in the drive's cache; F_FULLFSYNC does not. Elsewhere this does nothing.
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA checkpoint_fullfsync = ON")
            connection.execute("PRAGMA foreign_keys = ON")
            migrate(connection)
        return cls(folder, connection)

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

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with explained(self.folder / DATABASE):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _rows(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        with explained(self.folder / DATABASE):
            return self._db.execute(sql, values).fetchall()

    def meta(self, key: str, default: Any = None) -> Any:
        """A value kept with the run, as JSON: "spec", "identity", "data", "created" ..."""
        rows = self._rows("SELECT value FROM meta WHERE key = ?", (key,))
        return json.loads(rows[0][0]) if rows else default

    def set_meta(self, key: str, value: Any) -> None:
        """Keep a JSON value with the run."""
        with self._transaction():
            self._store(key, value)

    def change_meta(self, key: str, change: Callable[[Any], Any]) -> None:
        """Replace a value by what ``change`` makes of it (of None where there is none), in one transaction."""
        with self._transaction():
            rows = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchall()
            self._store(key, change(json.loads(rows[0][0]) if rows else None))

    def _store(self, key: str, value: Any) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, storable(canonical_json(value))))
        if key in ownership.SEALED:
            self._store(ownership.SEAL, ownership.seal(self._sealed()))

    def _sealed(self) -> dict[str, Any]:
        """The seal, and what it covers, as stored."""
        names = (*ownership.SEALED, ownership.SEAL)
        return dict(self._rows(f"SELECT key, value FROM meta WHERE key IN ({', '.join('?' * len(names))})", names))

    def _generations(self, where: str, values: Sequence[Any]) -> dict[int, list[Generation]]:
        found: dict[int, list[Generation]] = defaultdict(list)
        for ordinal, instance_id, step, tokens, *rest in self._rows(
            "SELECT g.instance, i.id, g.step, g.tokens, g.text, g.finish_reason, g.prompt_tokens, g.completion_tokens,"
            " g.prefill_s, g.decode_s, g.peak_memory, g.error, g.calls, g.active_memory, g.cache_memory, g.scores"
            " FROM generation g JOIN instance i ON i.ordinal = g.instance"
            f" WHERE g.accepted AND g.{where} ORDER BY g.instance, g.step",
            values,
        ):
            numbers = array("I")
            numbers.frombytes(tokens)
            text, finish_reason, *figures, scores = rest
            figures.append(tuple(json.loads(scores)) if scores else ())
            found[ordinal].append(Generation(f"{instance_id}#{step}", text, finish_reason, tuple(numbers), *figures))
        return found


def _must_exist(folder: Path) -> Path:
    path = folder / DATABASE
    if not path.is_file():
        raise StoreError(f"{folder} is not a run: it has no {DATABASE}; `rashomon runs` lists the runs there are.")
    return path


def _read_only(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None, timeout=5)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def storable(text: str) -> str:
    # SQLite stores UTF-8; a lone surrogate has none and becomes its visible escape.
    return text.encode("utf-8", "backslashreplace").decode()
