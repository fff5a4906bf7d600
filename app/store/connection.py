"""Connections to a run's database that whoever sent it cannot misuse."""

from __future__ import annotations

import sqlite3
import sys
import time
from pathlib import Path

from app.store.schema import foreign_objects
from benchmarks.errors import StoreError
from benchmarks.untrusted.safe_files import check_database

DATABASE = "run.sqlite"

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 64 << 20,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
}
_STEPS = 100_000
"""Steps of SQLite's virtual machine between two looks at the clock, about a millisecond."""
_SECONDS, _BYTES_A_SECOND = 5.0, 10_000_000
"""What one statement may take: seconds of this thread's processor, and one more for so many bytes of the database."""


class StatementTimeLimit:
    """The time that a statement may take. A statement that reads everything once stays far below it."""

    def __init__(self, connection: sqlite3.Connection, size: int) -> None:
        self._seconds = _SECONDS + size / _BYTES_A_SECOND
        self._end: float | None = None
        self.is_over = False
        connection.set_progress_handler(self._look, _STEPS)

    def start(self) -> None:
        """Begin a statement."""
        self._end = time.thread_time() + self._seconds

    def stop(self) -> None:
        """Let what follows take as long as it takes."""
        self._end = None

    def _look(self) -> int:
        # What a signal's handler raises here ends the statement and is lost; see app.store.sqlite_errors.
        self.is_over = self._end is not None and time.thread_time() > self._end
        return int(self.is_over)


def open_writable(folder: Path) -> sqlite3.Connection:
    """Open the database in a folder for writing; it is made where there is none. Raises StoreError and sqlite3.Error."""
    check_database(folder, DATABASE, write=True)
    return _hardened(sqlite3.connect(folder / DATABASE, isolation_level=None, timeout=30), folder)


def open_read_only(folder: Path) -> sqlite3.Connection:
    """Open the database in a folder so that nothing in the folder changes. Raises StoreError and sqlite3.Error."""
    check_database(folder, DATABASE, write=False)
    try:
        return _read_only(folder, "mode=ro")
    except sqlite3.OperationalError:
        # In a folder that cannot be written a database in WAL mode opens only as immutable, which leaves its
        # log unread: right if that is empty.
        if _size(folder / f"{DATABASE}-wal"):
            raise
        return _read_only(folder, "immutable=1")


def open_copy(source: sqlite3.Connection) -> sqlite3.Connection:
    """Return a private, temporary copy of a database, which is on the disk where it is large."""
    copy = sqlite3.connect("", isolation_level=None)
    source.backup(copy)
    _set_limits(copy)
    return copy


def lenient_text(text: bytes) -> str | bytes:
    """Return a stored text, or its bytes where they are no UTF-8: so it is no text to whoever reads the row."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text


def size(connection: sqlite3.Connection) -> int:
    """Return the bytes of a database."""
    ((pages,),), ((page,),) = (connection.execute(f"PRAGMA {what}").fetchall() for what in ("page_count", "page_size"))
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
    """The connection, after its schema was compared with what this program makes, before anything of it is used."""
    try:
        _set_limits(connection)
        connection.text_factory = lenient_text
        connection.execute("BEGIN")  # the version and the schema at one moment
        try:
            foreign = foreign_objects(connection)
        finally:
            connection.execute("ROLLBACK")
        connection.text_factory = str
        if foreign:
            raise StoreError(
                f"{folder} is not a run as Rashomon makes it: its database has another {', '.join(foreign[:3])}"
                f"{' and more' if len(foreign) > 3 else ''}; take a copy from whoever made it."
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
