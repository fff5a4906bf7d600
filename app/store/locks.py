"""Locks that the kernel lets go of when their holder dies: one on a run's folder, one on the machine's device."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from app.store.sqlite_errors import StoreFullError
from benchmarks.errors import StoreError
from benchmarks.untrusted.safe_files import UnsafeFileError, is_full, open_descriptor


class FileLock:
    """An exclusive lock on a file, whose text says who holds it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def acquire(self, who: str, *, patience: float = 0.5) -> bool:
        """Take the lock if it is free; False if another process has it. Raises StoreError where it cannot be made,
        or where its name is a link or no regular file.

        It is tried for ``patience`` seconds, because :meth:`holder` holds it for a moment.
        """
        try:
            fd = open_descriptor(self.path.parent, self.path.name, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror}; the folder must be writable.") from error
        end = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    os.close(fd)
                    return False
                time.sleep(0.01)
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, who.encode(), 0)
        except OSError as error:
            os.close(fd)
            kind = StoreFullError if is_full(error) else StoreError
            raise kind(f"cannot write {self.path}: {error.strerror}; free some space and try again.") from error
        self._fd = fd
        return True

    def release(self) -> None:
        """Let the lock go; the file stays, since removing it would race with the next holder."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def holder(self) -> str | None:
        """Who holds the lock now, or None when it is free."""
        try:
            fd = open_descriptor(self.path.parent, self.path.name, os.O_RDONLY)
        except (OSError, UnsafeFileError):  # nobody can hold what is no lock
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(fd, 200, 0).decode(errors="replace")
        else:
            return None
        finally:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def working(lock: FileLock) -> str:
    """Who works on the run whose lock ``lock`` is, in words."""
    return f"{lock.holder() or 'another process'} is already working on {lock.path.parent.name}"
