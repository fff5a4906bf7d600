"""A user at a terminal, who types keys once the screen has been still for a moment, and leaves."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.terminal import Terminal

_STILL_S, _LONGEST_S = 0.5, 3.0
"""Seconds without a change of the screen after which the next keys are typed, and the most that are waited for it."""
_LEAVING = ("\x1b", "\x11", "\x11")
"""Keys until the interface ends: back, quit, and quit again where it asks about active runs."""
_NORMAL_SCREEN = "\x1b[?1049l"
_SEQUENCE = re.compile(r"\x1b\[[0-9;?<>=]*[a-zA-Z]")


class Typist:
    """A user who types ``keys``, and then quits unless a signal is to end the command."""

    def __init__(
        self, words: Sequence[str], environment: Mapping[str, str], folder: Path, keys: Sequence[str], *, quits: bool
    ) -> None:
        self.terminal = Terminal(words, environment, folder, controls=True)
        self._left = deque(keys)
        self._quits = quits
        self._typed = self._changed = time.monotonic()
        self._leaving = 0

    @property
    def is_done(self) -> bool:
        """True once all keys are typed and the last has had some time."""
        return not self._left and time.monotonic() - self._typed > _STILL_S

    def poll(self) -> None:
        """Read what was written, and type what is due."""
        now = time.monotonic()
        if self.terminal.read(0):
            self._changed = now
        is_displayed = "\x1b[?1049h" in self.terminal.screen
        if not is_displayed or (now - self._changed < _STILL_S and now - self._typed < _LONGEST_S):
            return
        if now - self._typed < _STILL_S or not (self._left or self._quits):
            return
        if self._left:
            self.terminal.send(self._left.popleft())
        else:
            self.terminal.send(_LEAVING[self._leaving % len(_LEAVING)])
            self._leaving += 1
        self._typed = now

    def end(self) -> tuple[str, str]:
        """Close the terminal; return all that was written, and the text that stands there once the interface has left it."""
        self.terminal.read(0)
        self.terminal.hang_up()
        return self.terminal.screen, _SEQUENCE.sub("", self.terminal.screen.rpartition(_NORMAL_SCREEN)[2])
