"""Roles that a matching rule finds in an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.clash.constants import Role

RoleMatches = tuple[tuple[Role, ...], str]
"""The roles of the matches, each at most once, and the rule with the words that matched."""

References = Mapping[str, tuple[str, ...]]

_MAX_QUOTED = 60


def match_words(rule: str, candidates: Mapping[Role, tuple[str, ...]], stands: Callable[[str], bool]) -> RoleMatches:
    """Return the roles with words that occur in the answer. Blank words never occur."""
    matches = {}
    for role, phrases in candidates.items():
        words = next((words for words in phrases if words.strip() and stands(words)), None)
        if words is not None:
            matches[role] = words
    if not matches:
        return (), f"{rule}: none of the words it looks for"
    return tuple(
        matches
    ), f"{rule}: {', '.join(f'{words[:_MAX_QUOTED]!r} ({role})' for role, words in matches.items())}"
