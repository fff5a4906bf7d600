"""Execution of a plugin's code, which may print, change this process, and raise what ends a program."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from types import FrameType
from typing import Any

from benchmarks.errors import RashomonError, SpecError

_LONGEST = 200
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGALRM)

_lock = threading.RLock()


@contextmanager
def plugin_code() -> Iterator[None]:
    """Run code of a plugin within the block: it prints to standard error, and an Exception is all that it raises.

    Afterwards the working directory and the handlers of signals are those from before. What a signal raises ends the block as it
    is, since that is the user's wish and not the plugin's. Raises SpecError in place of what is no Exception, such as SystemExit.
    """
    with _lock, _same_folder(), _same_handlers() as received, redirect_stdout(sys.stderr):
        try:
            yield
        except Exception:
            raise
        except BaseException as error:
            if received:
                raise
            raise SpecError(f"it raised {type(error).__name__}") from error


@contextmanager
def _same_folder() -> Iterator[None]:
    try:
        before = os.open(".", os.O_RDONLY)
    except OSError:  # the working directory is gone, or cannot be read
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            os.fchdir(before)
        os.close(before)


@contextmanager
def _same_handlers() -> Iterator[list[int]]:
    """Yield the list of the signals with a handler that come within the block; other threads than the first get none."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        handler = before[number]
        if callable(handler):
            signal.signal(number, _noting(received, handler))
    try:
        yield received
    finally:
        for number, handler in before.items():
            if handler is not None:  # that of another language cannot be set from here
                signal.signal(number, handler)


def _noting(received: list[int], handler: Any) -> Any:
    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        handler(number, frame)

    return note


def short_reason(error: BaseException) -> str:
    """Return the type and the message of a plugin's exception in one short, printable line."""
    kind = type(error).__name__
    try:
        with plugin_code():
            message = " ".join(str(error).split()).rstrip(".")
    except Exception:  # its own text fails
        message = ""
    if not message:
        message = kind
    elif not isinstance(error, RashomonError):
        message = f"{kind}: {message}"
    return "".join(c if c.isprintable() else "?" for c in message)[:_LONGEST]
