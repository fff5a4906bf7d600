"""References of a question as people read them: a heading and a text for each source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.vocabulary import FOR_POLICIES

_SPEAKERS = ("image", "text")
"""The references that a source states; others, such as options, are not said by anything."""
_LETTER = " letter"


def reference_lines(references: Iterable[tuple[str, Sequence[str]]]) -> list[tuple[str, str, str]]:
    """Return the heading, the text and the letter of each reference: ("image says", "88", "") or ("text says", "red", "B").

    The letter is that of an option, or "". The texts are as stored, so they may be hostile.
    """
    visible = {source: " | ".join(values) for source, values in references if not source.startswith(FOR_POLICIES)}
    letters = {source: visible.pop(source + _LETTER) for source in list(visible) if source + _LETTER in visible}
    names = {source: f"{source} says" if source in _SPEAKERS else source for source in visible}
    return [(names[source], value, letters.get(source, "")) for source, value in visible.items()]
