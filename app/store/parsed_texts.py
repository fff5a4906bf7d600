"""Parsed values of stored texts, so that runs of one build parse each instance once."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

_T = TypeVar("_T")

_LIMIT = 16 << 20
"""The number of characters that are held: all instances of most builds, and of a very large one the first ones."""


class ParsedTexts(Generic[_T]):
    """Values by the text that they were parsed from, up to a total length of the texts; later texts are not held."""

    def __init__(self) -> None:
        self._values: dict[str, _T] = {}
        self._length = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return ParsedTexts, ()  # in another process, parsing is faster than unpickling

    def get(self, text: str) -> _T | None:
        """Return the value of ``text``, or None."""
        return self._values.get(text)

    def add(self, text: str, value: _T) -> None:
        """Hold the value of ``text``, if there is room."""
        if self._length + len(text) <= _LIMIT:
            self._values[text] = value
            self._length += len(text)
