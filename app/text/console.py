"""The terminal, as rich sees it."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console

_UNBOUNDED = 100_000
"""Columns of output that goes to a file or another program, where nothing may be truncated or folded."""


class Terminal(Console):
    """A console that says it when the reader of its output has gone, instead of ending the process.

    Output that is no terminal is as wide as its lines, unless COLUMNS says otherwise.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if not self.is_terminal and not os.environ.get("COLUMNS"):
            self.width = _UNBOUNDED

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
