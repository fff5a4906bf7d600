"""What others can do to a run that a process works on: pause it, let it go on, stop it.

A pause is a file in the run's folder, so that it needs no channel to the worker and outlives whoever asked for it: the worker
looks at it between answers (see :mod:`app.engine.pausing`), `touch` makes it and `rm` lifts it.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from app.locks import FileLock
from benchmarks.errors import StoreError

PAUSE = "pause"
"""The file in a run's folder that pauses it while it is there."""


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
        (folder / PAUSE).touch()
    except OSError as error:
        raise StoreError(f"cannot write in {folder}: {error.strerror}; make the run's folder writable.") from error


def is_paused(folder: Path) -> bool:
    """Whether a pause is asked for."""
    return (folder / PAUSE).exists()


def unpause(folder: Path) -> bool:
    """Lift a run's pause; whether a worker goes on by that. Raises StoreError where the folder cannot be written."""
    try:
        (folder / PAUSE).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"cannot write in {folder}: {error.strerror}; make the run's folder writable.") from error
    return worker_of(folder) is not None


def stop_run(folder: Path) -> None:
    """Have the worker at a run stop at the next answer, as Ctrl-C would. Raises StoreError where nobody works on it."""
    pid = worker_of(folder)
    if pid is None:
        raise StoreError(f"nobody works on {folder.name}; there is nothing to stop.")
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return  # it ended meanwhile
    except PermissionError as error:
        raise StoreError(f"process {pid} works on {folder.name} and belongs to somebody else.") from error
