"""Device lock: one model at a time uses this machine's accelerator, across all workspaces."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

from app.store.file_locks import FileLock
from benchmarks.errors import BusyError, NoAccessError
from benchmarks.untrusted.private_folders import cache_folder, make_private

_POLL_SECONDS = 0.2


def device_lock_path() -> Path:
    """Return the path of the device's lock file: one for each user and machine."""
    return cache_folder() / "device.lock"


def acquire_device(
    owner: str, *, waiting: Callable[[str], None], stop: Callable[[], bool], patience: float | None = None
) -> FileLock | None:
    """Wait for the device and lock it; return None if ``stop()`` comes first.

    ``waiting`` receives the holder whenever that changes. Raises BusyError after ``patience`` seconds if there is such a limit,
    and StoreError if the lock file cannot be created.
    """
    path = device_lock_path()
    try:
        make_private(path.parent)
    except OSError as error:
        raise NoAccessError(f"cannot write {path.parent}: {error.strerror}; make it writable.") from error
    lock = FileLock(path)
    reported: str | None = None
    end = math.inf if patience is None else time.monotonic() + patience
    while not stop():
        if lock.acquire(owner, patience=0):
            return lock
        holder = lock.holder() or "another run"
        if time.monotonic() >= end:
            raise BusyError(f"{holder} has the device; run the same command again later, or with a longer --wait.")
        if holder != reported:
            reported = holder
            waiting(holder)
        time.sleep(_POLL_SECONDS)
    return None
