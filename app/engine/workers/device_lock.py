"""The device lease: one model holds this machine's accelerator at a time, whatever workspace it works in."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from app.store.locks import FileLock
from benchmarks.errors import StoreError

_POLL_SECONDS = 0.2


def lease_path() -> Path:
    """The lock file that stands for the device: one a user and machine."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("rashomon")) / "device.lock"


def acquire_device(who: str, *, waiting: Callable[[str], None], stop: Callable[[], bool]) -> FileLock | None:
    """Wait until the device is free and take it; None if ``stop`` said so first.

    ``waiting`` is told who holds it whenever that changes. Raises StoreError where the lock cannot be made.
    """
    path = lease_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write {path.parent}: {error.strerror}; it must be writable.") from error
    lock = FileLock(path)
    told: str | None = None
    while not stop():
        if lock.acquire(who, patience=0):
            return lock
        holder = lock.holder() or "another run"
        if holder != told:
            told = holder
            waiting(holder)
        time.sleep(_POLL_SECONDS)
    return None
