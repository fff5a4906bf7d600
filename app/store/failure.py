"""What SQLite's errors mean to a user."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.errors import StoreError


class StoreFullError(StoreError):
    """The disk, or the database's page limit, is reached; what was committed is safe."""

    exit_code = 1


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an error of SQLite about the database ``path`` that a user can mend into a StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        told = _explanation(error, path)
        if told is None:
            raise
        raise told from error


def _explanation(error: sqlite3.Error, path: Path) -> StoreError | None:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreFullError(
            f"no room is left for {path}: every answer reported done is safe; free some space and go on."
        )
    if code == sqlite3.SQLITE_IOERR:
        return StoreFullError(
            f"{path} could not be written or read ({error}): every answer reported done is safe; see to the disk and go on."
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreError(f"cannot write in {path.parent}; make it writable or name another --workspace.")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreError(f"{path} is damaged ({error}); restore it from a copy or start the run again.")
    if code == sqlite3.SQLITE_BUSY:
        return StoreError(f"{path} is in use by another process; try again when it is done.")
    return None
