"""File locks that the kernel releases when their holder dies: one for each run, and one for the machine's device."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.errors import NoAccessError, StoreError
from benchmarks.untrusted.safe_files import UnsafeFileError, open_descriptor, write_error

KILLED = "its worker was killed or crashed"
"""The note on work whose worker holds its lock no longer, and did not say how it ended."""

_SHARED = "shared by "
"""The beginning of a lock's text where several processes of one holder may share it."""

_LONGEST = 200
"""The bytes of a lock's text that are stored."""

_LONGEST_LOOK = 30.0


class FileLock:
    """A lock on a file, whose text names the holder; exclusive, unless several processes of one holder share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def acquire(self, holder: str, *, patience: float = 0.5) -> bool:
        """Acquire the lock for ``holder``; return False if another process holds it.

        Retry for ``patience`` seconds. :meth:`holder` holds the lock for a moment, which is long in a process that is stopped or
        starved; that alone is waited for up to :data:`_LONGEST_LOOK` seconds. Raises StoreError if the file cannot be created or
        locked, or is a link or not a regular file.
        """
        fd = self._open()
        start = time.monotonic()
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = time.monotonic() - start
                if waited > patience and not (patience and waited < _LONGEST_LOOK and _is_only_looked_at(fd)):
                    os.close(fd)
                    return False
                time.sleep(0.01)
            except OSError as error:  # some network shares and foreign disks have no locks
                os.close(fd)
                raise StoreError(
                    f"the disk of {self.path.parent} has no file locks ({error.strerror}), so two processes could write at "
                    "once; use a folder on this machine's own disk (--workspace)."
                ) from error
        self._fd = fd
        self._write(fd, holder)
        return True

    def acquire_shared(self, holder: str) -> bool:
        """Acquire the lock for ``holder``, whose other processes may hold it too; return False if somebody else holds it.

        It stays locked until the last of them ends. Raises as :meth:`acquire`.
        """
        text = _SHARED + holder
        if self.acquire(text, patience=0):
            assert self._fd is not None
            fd, self._fd = self._fd, None  # becoming shared unlocks it for a moment, in which another holder may come
        else:
            fd = self._open()
        with suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.pread(fd, _LONGEST, 0) == text.encode()[:_LONGEST]:
                self._fd = fd
                return True
        os.close(fd)
        return False

    def _open(self) -> int:
        try:
            return open_descriptor(self.path.parent, self.path.name, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise NoAccessError(f"cannot write {self.path}: {error.strerror}; make the folder writable.") from error

    def _write(self, fd: int, text: str) -> None:
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, text.encode()[:_LONGEST], 0)
        except OSError as error:
            self.release()
            raise write_error(self.path, error, "free some space and try again") from error

    @property
    def held(self) -> bool:
        """True if this object holds the lock."""
        return self._fd is not None

    def rename(self, holder: str) -> None:
        """Name another holder of the lock, which this process has acquired. Raises StoreError if the file cannot be written."""
        if self._fd is not None:
            self._write(self._fd, holder)

    def release(self) -> None:
        """Release the lock; the file stays, since removing it would race with the next holder."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def holder(self) -> str | None:
        """Return the current holder's text; None if the lock is free."""
        try:
            fd = open_descriptor(self.path.parent, self.path.name, os.O_RDONLY)
        except (OSError, UnsafeFileError):  # not a lock, so nobody holds it
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.pread(fd, len(_SHARED), 0) == _SHARED.encode():  # then the lock of its holders lets this one pass
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(fd, _LONGEST, 0).decode(errors="replace").removeprefix(_SHARED)
        except OSError:  # a disk without locks, where nobody can hold one
            return None
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


def _is_only_looked_at(fd: int) -> bool:
    """Return whether those who hold a lock only look who holds it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    text = os.pread(fd, len(_SHARED), 0)
    fcntl.flock(fd, fcntl.LOCK_UN)
    return text != _SHARED.encode()


def busy_message(lock: FileLock) -> str:
    """Return a message on who is working on the run with this lock."""
    return f"{lock.holder() or 'another process'} is already working on {lock.path.parent.name}"
