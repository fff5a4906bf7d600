"""Progress reports of a running batch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, Self

from app.store.run_summary import RunSummary
from app.text.text_escaping import clean


class Display(Protocol):
    """Receiver of a supervisor's progress: the state of its runs, again and again, and what else happens."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @abstractmethod
    def update(self, runs: Sequence[RunSummary]) -> None:
        """Display the current worker's runs as they are now."""

    def notice(self, message: str) -> None:
        """Print a sentence that is no result, such as a warning; what ends the command is an exception's message."""
        print(clean(message), flush=True)
