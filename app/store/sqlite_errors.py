"""Translation of SQLite's errors into errors for users."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.text.shell_quoting import shell_quote
from benchmarks.errors import STOPPED, BusyError, NoAccessError, StoreError, StoreFullError

_NOT_UTF8 = "a text in it is not UTF-8"
"""The cause of "user-defined function raised exception": Python decodes a stored text before it calls the function."""


class DamagedError(StoreError):
    """A run's database differs from what Rashomon wrote. ``where`` names the table and the row, ``why`` is a phrase."""

    exit_code = STOPPED

    def __init__(self, folder: Path, where: str, why: str) -> None:
        super().__init__(
            f"{folder.name} is damaged: {where}: {why}; `rashomon doctor {typed_run(folder)}` lists what can be saved."
        )
        self.folder = folder
        self.where = where
        self.why = why


def typed_run(folder: Path) -> str:
    """Return what a command takes for a run: its name, or its folder where that is in no workspace."""
    return folder.name if folder.parent.name == "runs" else shell_quote(str(folder))


@contextmanager
def translate_errors(path: Path, is_over: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Translate SQLite's errors about the database ``path`` into StoreError, except for programming errors.

    ``is_over()`` tells if a statement was interrupted by its time limit rather than by a signal.
    """
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_INTERRUPT and not is_over():
            # An exception from a signal handler is lost in SQLite's progress handler.
            raise KeyboardInterrupt from error
        translated = _explanation(error, path)
        if translated is None:
            raise
        raise translated from error
    except UnicodeDecodeError as error:
        # Python cannot decode an error message of SQLite that quotes damaged text, such as a table's name.
        raise DamagedError(path.parent, path.name, "its schema is not UTF-8 text") from error


def _explanation(error: sqlite3.Error, path: Path) -> StoreError | None:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreFullError(
            f"the disk of {path} is full; every answer reported done is safe: free some space, then resume."
        )
    if code == sqlite3.SQLITE_IOERR:
        return StoreFullError(
            f"{path} could not be written or read ({error}); every answer reported done is safe: check the disk, then resume."
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return NoAccessError(f"cannot write in {path.parent}; make it writable or name another --workspace.")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DamagedError(path.parent, path.name, str(error))
    if code == sqlite3.SQLITE_BUSY:
        return BusyError(f"{path} is in use by another process; try again later.")
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError | sqlite3.InternalError):
        return None  # a programming error
    if code == sqlite3.SQLITE_INTERRUPT:
        return DamagedError(path.parent, path.name, "reading it takes far longer than its size explains")
    # The schema was verified and the SQL is our own, so the stored data is at fault.
    return DamagedError(path.parent, path.name, _NOT_UTF8 if "user-defined" in str(error) else str(error))
