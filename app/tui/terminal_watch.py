"""The end of the interface from outside: a signal that stops it, or a terminal that is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from functools import partial
from typing import Any

from textual.app import App

from app.exit_codes import INTERRUPTED
from app.system.process_signals import handle_stop_signals


class TerminalWatch:
    """Ends an interface at a stop signal, and once the terminal is gone."""

    def __init__(self, app: App[int]) -> None:
        self._app = app
        self._handlers: dict[signal.Signals, Any] = {}
        """The handlers of the signals, as they were before."""

    def watch(self) -> None:
        """Watch from now on, where there is a terminal."""
        if self._app.is_headless or not _on_terminal():
            return
        self._app.set_interval(1.0, self._end_without_terminal)
        # In the loop: an exception that a handler raises ends the task it falls into, and nothing else.
        loop = asyncio.get_running_loop()
        end = partial(self._app.exit, return_code=INTERRUPTED)
        self._handlers = handle_stop_signals(lambda *_: loop.call_soon_threadsafe(end))

    def restore(self) -> None:
        """Restore the handlers of the signals."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _end_without_terminal(self) -> None:
        """End once the terminal is gone: Textual would wait for keys for ever, and use a processor for it."""
        if not _on_terminal():
            self._app.exit(0)


def _on_terminal() -> bool:
    """Return whether keys come from a terminal that is still there."""
    try:
        return os.isatty(sys.__stdin__.fileno()) if sys.__stdin__ is not None else False
    except (OSError, ValueError):
        return False
