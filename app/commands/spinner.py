"""What a command that says nothing yet is doing, for whoever waits before a terminal."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from app.text.escape import clean

AFTER_SECONDS = 1.0
_AWAY = "\r\x1b[K"


@contextmanager
def doing(what: str) -> Iterator[Callable[[str], None]]:
    """After a second, a line on standard error that says ``what`` is being done, taken away at the end of the block.

    Only where standard error is a terminal. What is given says that something else is being done now. Print nothing within
    the block: the line would stand before it.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda what: None
        return
    line = _Line(what)
    timer = threading.Timer(AFTER_SECONDS, line.show)
    timer.daemon = True
    timer.start()
    try:
        yield line.say
    finally:
        timer.cancel()
        line.end()


class _Line:
    """A line that is seen from :meth:`show` to :meth:`end`."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._seen = self._ended = False
        self._lock = threading.Lock()

    def say(self, what: str) -> None:
        with self._lock:
            self._what = what
            if self._seen:
                self._write()

    def show(self) -> None:
        with self._lock:
            if not self._ended:
                self._seen = True
                self._write()

    def end(self) -> None:
        with self._lock:
            self._ended = True
            if self._seen:
                _put(_AWAY)

    def _write(self) -> None:
        # A line that is broken by the terminal's edge could not be taken away.
        _put(f"{_AWAY}{clean(self._what)[: shutil.get_terminal_size().columns - 5]} ...")


def _put(text: str) -> None:
    with suppress(OSError):  # the terminal has gone: nobody waits there
        sys.stderr.write(text)
        sys.stderr.flush()
