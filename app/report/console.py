"""The terminal, as rich sees it."""

from __future__ import annotations

from rich.console import Console


class Terminal(Console):
    """A console that says it when the reader of its output has gone, instead of ending the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
