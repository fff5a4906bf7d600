"""Control of a run from other processes: pause, resume and stop.

A pause is a file in the run's folder. It needs no channel to the worker, and outlives the process that requested it. The worker
checks for it between answers; `touch` creates it and `rm` removes it.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Collection
from pathlib import Path

from app.store.file_locks import FileLock
from app.store.run_summary import PAUSE_FILE
from app.system.process_signals import stop_process
from benchmarks.errors import NoAccessError, StoreError
from benchmarks.untrusted.safe_files import exists, open_write, remove_file


def worker_pid(folder: Path) -> int | None:
    """Return the process id of a run's worker; None if the run has none."""
    holder = FileLock(folder / "lock").holder() or ""
    match = re.fullmatch(r"process (\d+)", holder)
    return int(match[1]) if match else None


def pause(folder: Path) -> None:
    """Pause a run's worker. Raises StoreError if it has none, or its folder cannot be written."""
    if worker_pid(folder) is None:
        raise StoreError(f"{folder.name} is not running; there is nothing to pause.")
    try:
        open_write(folder, PAUSE_FILE, append=True).close()
    except OSError as error:
        raise NoAccessError(f"cannot write in {folder}: {error.strerror}; make the run's folder writable.") from error


def is_paused(folder: Path) -> bool:
    """Return whether a pause is requested."""
    return exists(folder, PAUSE_FILE)


def unpause(folder: Path) -> bool:
    """Remove a run's pause; return whether a worker resumes. Raises StoreError if the folder cannot be written."""
    try:
        remove_file(folder, PAUSE_FILE)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise NoAccessError(f"cannot write in {folder}: {error.strerror}; make the run's folder writable.") from error
    return worker_pid(folder) is not None


def clear_stale_pause(folder: Path) -> None:
    """Remove a pause that no worker waits at, since a started run should not pause at once. Raises StoreError."""
    if worker_pid(folder) is None:
        unpause(folder)


def stop_batch(folder: Path, *, exclude: Collection[int] = ()) -> None:
    """Stop a run and the rest of its batch, as a first Ctrl-C would; do nothing if it has no worker.

    The processes in ``exclude``, which have already had a signal, are skipped. Raises StoreError like :func:`stop_run`.
    """
    pid = worker_pid(folder)
    batch = batch_pid(folder)
    if pid is None or batch in exclude:
        return
    stop_process(batch or pid, folder.name)


def kill_worker(folder: Path) -> None:
    """Kill the worker of a batch that was told to stop, as a second Ctrl-C would.

    Raises StoreError if it has ended, or is another user's.
    """
    if (batch := batch_pid(folder)) is None:
        raise StoreError(f"{folder.name} has no worker any more; there is nothing to kill.")
    stop_process(batch, folder.name, signal.SIGINT)


def batch_pid(folder: Path) -> int | None:
    """Return the id of the process that started a run's worker, and may start others; None if there is none."""
    pid = worker_pid(folder)
    return None if pid is None else _parent_of(pid)


def _parent_of(pid: int) -> int | None:
    """Return the id of the process that started a worker; None if it is gone and the worker was reparented."""
    output = subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    parent = int(output) if output.strip().isdigit() else 1
    command = subprocess.run(
        ["ps", "-o", "command=", "-p", str(parent)], capture_output=True, text=True, check=False
    ).stdout
    return parent if parent > 1 and ("rashomon" in command or "app.main" in command) else None


def stop_run(folder: Path) -> None:
    """Stop a run's worker at the next answer, as Ctrl-C would. Raises StoreError if it has none."""
    pid = worker_pid(folder)
    if pid is None:
        raise StoreError(f"{folder.name} is not running; there is nothing to stop.")
    stop_process(pid, folder.name)
