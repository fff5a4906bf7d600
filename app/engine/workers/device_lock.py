"""Device lock: one model at a time uses this machine's accelerator, across all workspaces."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from app.store.locks import FileLock
from benchmarks.errors import StoreError

_POLL_SECONDS = 0.2


def device_lock_path() -> Path:
    """Return the path of the device's lock file: one for each user and machine."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("rashomon")) / "device.lock"


def acquire_device(owner: str, *, waiting: Callable[[str], None], stop: Callable[[], bool]) -> FileLock | None:
    """Wait for the device and lock it; return None if ``stop()`` comes first.

    ``waiting`` receives the holder whenever that changes. Raises StoreError if the lock file cannot be created.
    """
    path = device_lock_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write {path.parent}: {error.strerror}; make it writable.") from error
    lock = FileLock(path)
    reported: str | None = None
    while not stop():
        if lock.acquire(owner, patience=0):
            return lock
        holder = lock.holder() or "another run"
        if holder != reported:
            reported = holder
            waiting(holder)
        time.sleep(_POLL_SECONDS)
    return None
