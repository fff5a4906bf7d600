"""Progress reports of a running batch."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, Self

from app.store.workspace import RunSummary
from app.text.escape import clean


class Display(Protocol):
    """Receiver of a supervisor's progress: the state of its runs, again and again, and the problems it meets."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @abstractmethod
    def update(self, runs: Sequence[RunSummary]) -> None:
        """Display the current worker's runs as they are now."""

    def problem(self, message: str) -> None:
        """Print one sentence for the user to standard error."""
        print(f"rashomon: {clean(message)}", file=sys.stderr)
