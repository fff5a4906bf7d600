"""Signals that end a process, and whether it has ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.errors import StoreError


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let a signal end this process at once, where its handlers might run too late: a library may take long to return."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def is_alive(pid: str) -> bool:
    """Return whether a process has this id; False for a text that is no id."""
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def stop_process(pid: int, work: str, number: signal.Signals = signal.SIGTERM) -> None:
    """Stop a process that does ``work``, as a first Ctrl-C would. Raises StoreError if it is another user's."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it ended meanwhile
    except PermissionError as error:
        raise StoreError(f"process {pid} runs {work} and belongs to another user; ask them to stop it.") from error
