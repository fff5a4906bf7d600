"""Connections to a run's database, hardened against a malicious sender of the database."""

from __future__ import annotations

import sqlite3
import sys
import time
from pathlib import Path

from app.store.database_schema import foreign_objects
from benchmarks.errors import StoreError
from benchmarks.untrusted.safe_files import check_database

DATABASE = "run.sqlite"

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 64 << 20,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
}
_STEPS = 100_000
"""Steps of SQLite's virtual machine between two checks of the clock, about a millisecond."""
_SECONDS, _BYTES_A_SECOND = 5.0, 10_000_000
"""The time limit of a statement: seconds of this thread's CPU time, plus one for each so many bytes of the database."""


class StatementTimeLimit:
    """Time limit for a single statement; reading the whole database once stays far below it."""

    def __init__(self, connection: sqlite3.Connection, size: int) -> None:
        self._seconds = _SECONDS + size / _BYTES_A_SECOND
        self._end: float | None = None
        self.is_over = False
        connection.set_progress_handler(self._check, _STEPS)

    def start(self) -> None:
        """Start the clock for a statement."""
        self._end = time.thread_time() + self._seconds

    def stop(self) -> None:
        """Lift the limit for the statements that follow."""
        self._end = None

    def _check(self) -> int:
        # An exception from a signal handler here ends the statement but is lost; see app.store.sqlite_errors.
        self.is_over = self._end is not None and time.thread_time() > self._end
        return int(self.is_over)


def open_writable(folder: Path) -> sqlite3.Connection:
    """Open the database in a folder for writing, creating it if necessary. Raises StoreError and sqlite3.Error."""
    check_database(folder, DATABASE, write=True)
    return _hardened(sqlite3.connect(folder / DATABASE, isolation_level=None, timeout=30), folder)


def open_read_only(folder: Path) -> sqlite3.Connection:
    """Open the database in a folder without any change to the folder. Raises StoreError and sqlite3.Error."""
    check_database(folder, DATABASE, write=False)
    try:
        return _read_only(folder, "mode=ro")
    except sqlite3.OperationalError:
        # In a read-only folder, a database in WAL mode opens only as immutable, which ignores its log. That is correct
        # only if the log is empty.
        if _size(folder / f"{DATABASE}-wal"):
            raise
        return _read_only(folder, "immutable=1")


def open_copy(source: sqlite3.Connection) -> sqlite3.Connection:
    """Return a private, temporary copy of a database; a large one is kept on disk."""
    copy = sqlite3.connect("", isolation_level=None)
    source.backup(copy)
    _set_limits(copy)
    return copy


def lenient_text(text: bytes) -> str | bytes:
    """Return a stored text, or its bytes if they are not UTF-8, so that reading the row reports it."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text


def rewrite(connection: sqlite3.Connection) -> None:
    """Write a database whose schema was verified anew, as a single file whose bytes depend on its contents alone."""
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)  # SQLite's own temporary database
    try:
        connection.execute("VACUUM")
    finally:
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)


def size(connection: sqlite3.Connection) -> int:
    """Return the size of a database in bytes."""
    ((pages,),), ((page,),) = (connection.execute(f"PRAGMA {name}").fetchall() for name in ("page_count", "page_size"))
    return int(pages) * int(page)


def _read_only(folder: Path, how: str) -> sqlite3.Connection:
    uri = f"{(folder / DATABASE).absolute().as_uri()}?{how}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=5)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return _hardened(connection, folder)


def _hardened(connection: sqlite3.Connection, folder: Path) -> sqlite3.Connection:
    """Return the connection after verifying its schema, before anything in the database is used."""
    try:
        _set_limits(connection)
        connection.text_factory = lenient_text
        connection.execute("BEGIN")  # read the version and the schema in one snapshot
        try:
            foreign = foreign_objects(connection)
        finally:
            connection.execute("ROLLBACK")
        connection.text_factory = str
        if foreign:
            raise StoreError(
                f"{folder} is not a run as Rashomon creates it: its database has a different {', '.join(foreign[:3])}"
                f"{' and more' if len(foreign) > 3 else ''}; get a fresh copy from its author."
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _set_limits(connection: sqlite3.Connection) -> None:
    for limit, value in _LIMITS.items():
        connection.setlimit(limit, value)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_TRUSTED_SCHEMA, False)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
