"""Signals that end a process, and whether it has ended."""

from __future__ import annotations

import atexit
import os
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from benchmarks.errors import StoreError

Handler = Callable[[int, FrameType | None], object]


def handle_stop_signals(handler: Handler) -> dict[signal.Signals, Any]:
    """Have ``handler`` called for SIGINT, SIGTERM and SIGHUP, and return the handlers there were.

    SIGHUP stays ignored where it is, as by ``nohup``.
    """

    def without_terminal(number: int, frame: FrameType | None) -> None:
        _leave_closed_terminal()
        handler(number, frame)

    before: dict[signal.Signals, Any] = {
        number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)
    }
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, without_terminal)
    return before


def ignore_stop_signals() -> None:
    """Have SIGINT, SIGTERM and SIGHUP do nothing."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def end_at_stop_signals(code: int) -> None:
    """Have the stop signals end this process, whose work is done, with its own exit ``code``.

    While the interpreter ends they do nothing: it drops the handlers on the way, and the signal would be the exit code.
    """
    handle_stop_signals(lambda *_: os._exit(code))
    atexit.register(ignore_stop_signals)


def _leave_closed_terminal() -> None:
    """Write no more to a terminal that is gone, which would fail; a terminal that is there stays."""
    for descriptor in (1, 2):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor):
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let a signal end this process at once, where its handlers might run too late: a library may take long to return."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_process(pid: int, work: str, number: signal.Signals = signal.SIGTERM) -> None:
    """Stop a process that does ``work``, as a first Ctrl-C would. Raises StoreError if it is another user's."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it ended meanwhile
    except PermissionError as error:
        raise StoreError(f"process {pid} runs {work} and belongs to another user; ask them to stop it.") from error
