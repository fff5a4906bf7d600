"""The rich console for a terminal, a file or a pipe."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console

_UNBOUNDED = 100_000
"""The width of output to a file or another program, in which nothing may be truncated or wrapped."""


class Terminal(Console):
    """A console that raises BrokenPipeError when the reader of its output is gone, instead of ending the process.

    Output to a file or pipe is as wide as its lines, unless COLUMNS is set.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if not self.is_terminal and not os.environ.get("COLUMNS"):
            self.width = _UNBOUNDED

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
