"""What others can do to a run: pause it, let it go on, stop it.

A pause is a file in the run's folder, so that it needs no channel to the worker and outlives whoever asked for it: the worker
looks at it between answers, `touch` makes it and `rm` lifts it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Collection
from pathlib import Path

from app.store.locks import FileLock
from app.store.workspace import PAUSE
from benchmarks.errors import StoreError
from benchmarks.untrusted.safe_files import is_there, open_write, remove_file


def worker_of(folder: Path) -> int | None:
    """The process id of the worker at a run, None where nobody works on it or it is no worker."""
    holder = FileLock(folder / "lock").holder() or ""
    found = re.fullmatch(r"process (\d+)", holder)
    return int(found[1]) if found else None


def pause(folder: Path) -> None:
    """Have the worker at a run wait. Raises StoreError where nobody works on it, or the folder cannot be written."""
    if worker_of(folder) is None:
        raise StoreError(f"nobody works on {folder.name}; there is nothing to pause.")
    try:
        open_write(folder, PAUSE, append=True).close()
    except OSError as error:
        raise StoreError(f"cannot write in {folder}: {error.strerror}; make the run's folder writable.") from error


def is_paused(folder: Path) -> bool:
    """Whether a pause is asked for."""
    return is_there(folder, PAUSE)


def unpause(folder: Path) -> bool:
    """Lift a run's pause; whether a worker goes on by that. Raises StoreError where the folder cannot be written."""
    try:
        remove_file(folder, PAUSE)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"cannot write in {folder}: {error.strerror}; make the run's folder writable.") from error
    return worker_of(folder) is not None


def forget_pause(folder: Path) -> None:
    """Lift a pause that nobody waits at any more: whoever starts a run wants it to go on. Raises StoreError."""
    if worker_of(folder) is None:
        unpause(folder)


def stop_batch(folder: Path, *, but: Collection[int] = ()) -> None:
    """Stop a run and the runs that its batch would begin after it, as Ctrl-C would; nothing where nobody works on it.

    A second signal kills, so the processes in ``but``, which have had theirs, get none. Raises StoreError as :func:`stop_run`.
    """
    pid = worker_of(folder)
    batch = batch_of(folder)
    if pid is None or batch in but:
        return
    _terminate(batch or pid, folder)


def batch_of(folder: Path) -> int | None:
    """The process that started the worker at a run and may start others after it; None where there is none."""
    pid = worker_of(folder)
    return None if pid is None else _parent_of(pid)


def _parent_of(pid: int) -> int | None:
    """The process that started a worker; None where it is gone, and something else has its place."""
    shown = subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    parent = int(shown) if shown.strip().isdigit() else 1
    told = subprocess.run(
        ["ps", "-o", "command=", "-p", str(parent)], capture_output=True, text=True, check=False
    ).stdout
    return parent if parent > 1 and ("rashomon" in told or "app.main" in told) else None


def stop_run(folder: Path) -> None:
    """Have the worker at a run stop at the next answer, as Ctrl-C would. Raises StoreError where nobody works on it."""
    pid = worker_of(folder)
    if pid is None:
        raise StoreError(f"nobody works on {folder.name}; there is nothing to stop.")
    _terminate(pid, folder)


def _terminate(pid: int, folder: Path) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return  # it ended meanwhile
    except PermissionError as error:
        raise StoreError(f"process {pid} works on {folder.name} and belongs to somebody else.") from error
