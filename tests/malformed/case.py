"""A malformed input: how it is written, and what a user must get for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

SEED = 60

Make = Callable[[Path], Sequence[str]]
"""A function that writes an input into a home, and returns the arguments of the command that reads it."""


@dataclass(frozen=True)
class Case:
    """A malformed input by its name.

    ``code`` is the exit code that docs/scripting.md gives for it, and ``says`` a part of what the command prints; a command
    that ends with 0 prints it on standard output.
    """

    name: str
    make: Make
    code: int
    says: str


def cases(make: Callable[[str], Make], table: str) -> list[Case]:
    """Return the cases of a table with a line for each: name, exit code, a part of the message, separated by bars."""
    rows = ([cell.strip() for cell in line.split("|")] for line in table.strip().splitlines())
    return [Case(name, make(name), int(code), says) for name, code, says in rows]
