"""Folders that last as long as the process that made them: what a killed one leaves is removed by the next."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import weakref
from contextlib import suppress
from pathlib import Path


class HeldFolder:
    """A new folder ``prefix`` and random letters, locked until it is removed, or its process ends. Raises OSError."""

    def __init__(self, parent: Path, prefix: str) -> None:
        token = secrets.token_hex(4)
        new = parent / f".new-{token}"  # under its own name, it could be taken for a leftover before it is locked
        new.mkdir(mode=0o700, parents=True)
        descriptor = os.open(new, os.O_RDONLY)
        with suppress(OSError):  # of a disk without locks, from which nothing is removed later
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.path = parent / f"{prefix}{token}"
        new.rename(self.path)
        self._finish = weakref.finalize(self, _remove, self.path, descriptor)

    def keep_as(self, path: Path) -> None:
        """Give the folder another name, under which it stays. Raises OSError."""
        self.path.rename(path)
        self.remove()

    def remove(self) -> None:
        """Remove the folder."""
        self._finish()


def _remove(path: Path, descriptor: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(descriptor)


def remove_leftovers(parent: Path, pattern: str) -> None:
    """Remove the folders below ``parent`` that match ``pattern`` and whose process has ended, if they are this user's."""
    for path in parent.glob(pattern):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(descriptor).st_uid == os.geteuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)
