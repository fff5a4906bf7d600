"""What SQLite's errors mean to a user."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.errors import StoreError

_NOT_UTF8 = "a text in it is not UTF-8"
"""Why a function of Python's fails that SQLite calls: it is given what is stored, and of that Python cannot read this."""


class StoreFullError(StoreError):
    """The disk, or the database's page limit, is reached; what was committed is safe."""

    exit_code = 1


class DamagedError(StoreError):
    """A run's database that is not as Rashomon wrote it. ``where`` names the table and the row, ``why`` is a phrase."""

    def __init__(self, folder: Path, where: str, why: str) -> None:
        super().__init__(
            f"{folder.name} is damaged: {where}: {why}; `rashomon doctor {folder.name}` says what can be saved."
        )
        self.where = where
        self.why = why


@contextmanager
def explained(path: Path, is_over: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Turn an error of SQLite about the database ``path`` into a StoreError, unless it is a mistake of the program's own.

    ``is_over``: whether a statement was ended because it took too long, and not by a signal.
    """
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_INTERRUPT and not is_over():
            # What a signal's handler raises while SQLite works is lost in its progress handler.
            raise KeyboardInterrupt from error
        told = _explanation(error, path)
        if told is None:
            raise
        raise told from error
    except UnicodeDecodeError as error:
        # Python cannot read the message of an error of SQLite that quotes damaged text, such as a table's name.
        raise DamagedError(path.parent, path.name, "its schema is not UTF-8 text") from error


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
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError | sqlite3.InternalError):
        return None  # a mistake of the program's own
    if code == sqlite3.SQLITE_INTERRUPT:
        return DamagedError(path.parent, path.name, "reading it takes far longer than its size explains")
    # The schema is the program's own and so is the SQL, so what fails is what is stored.
    return DamagedError(path.parent, path.name, _NOT_UTF8 if "user-defined" in str(error) else str(error))
