"""What a matching rule found in an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.clash.constants import Role

Found = tuple[tuple[Role, ...], str]
"""The roles of what matches, none of them twice, and the rule and words by which it does."""

References = Mapping[str, tuple[str, ...]]

_SHOWN = 60


def by_words(rule: str, wanted: Mapping[Role, tuple[str, ...]], stands: Callable[[str], bool]) -> Found:
    """The roles of which some words stand in the answer. Words that are blank stand nowhere."""
    found = {}
    for role, candidates in wanted.items():
        words = next((words for words in candidates if words.strip() and stands(words)), None)
        if words is not None:
            found[role] = words
    if not found:
        return (), f"{rule}: none of the words it looks for"
    return tuple(found), f"{rule}: {', '.join(f'{words[:_SHOWN]!r} ({role})' for role, words in found.items())}"
