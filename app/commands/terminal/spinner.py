"""Status lines on the terminal while a command works without output."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from app.fetch.fetch_execution import PROGRESS_LINE
from app.text.text_escaping import clean

_REWRITE_SECONDS = 0.5
AFTER_SECONDS = 1.0
_CLEAR = "\r\x1b[K"


@contextmanager
def spinner(activity: str) -> Iterator[Callable[[str], None]]:
    """Show ``activity`` on standard error after a second, and clear the line at the end of the block.

    Nothing is shown unless standard error is a terminal. Yields a function that changes the activity. Print nothing within
    the block: the output would follow the status on the same line.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda activity: None
        return
    line = _StatusLine(activity)
    timer = threading.Timer(AFTER_SECONDS, line.show)
    timer.daemon = True
    timer.start()
    try:
        yield line.update
    finally:
        timer.cancel()
        line.end()


@contextmanager
def counter(total: int, noun: str) -> Iterator[Callable[[], None]]:
    """Count what is done on a status line; yields a function that adds one. Print nothing within the block.

    The interface gets a line that is rewritten every half a second.
    """
    done, start = 0, time.monotonic()
    written = start
    with spinner(f"0 of {total:,} {noun}") as update:

        def add() -> None:
            nonlocal done, written
            done += 1
            update(f"{done:,} of {total:,} {noun}")
            if PROGRESS_LINE in os.environ and time.monotonic() - written > _REWRITE_SECONDS:
                written = time.monotonic()
                _put(f"\r{done:,} of {total:,} {noun} ...")

        try:
            yield add
        finally:
            if written > start:
                _put("\n")


class _StatusLine:
    """A line that is visible from :meth:`show` to :meth:`end`."""

    def __init__(self, activity: str) -> None:
        self._activity = activity
        self._visible = self._ended = False
        self._lock = threading.Lock()

    def update(self, activity: str) -> None:
        with self._lock:
            self._activity = activity
            if self._visible:
                self._write()

    def show(self) -> None:
        with self._lock:
            if not self._ended:
                self._visible = True
                self._write()

    def end(self) -> None:
        with self._lock:
            self._ended = True
            if self._visible:
                _put(_CLEAR)

    def _write(self) -> None:
        # A line that wraps at the terminal's edge could not be cleared.
        _put(f"{_CLEAR}{clean(self._activity)[: shutil.get_terminal_size().columns - 5]} ...")


def _put(text: str) -> None:
    with suppress(OSError):  # the terminal is gone
        sys.stderr.write(text)
        sys.stderr.flush()
