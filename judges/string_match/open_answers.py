"""Relaxed matching of open answers (CLASH, Appendix A.2)."""

from __future__ import annotations

import re

from benchmarks.clash.constants import CONFLICT, IMAGE, TEXT
from benchmarks.text.stemming import stem
from judges.string_match.role_matches import References, RoleMatches, match_words

_CONFLICT_WORDS = ("conflict", "contradict")
_ARTICLES = frozenset({"the", "a", "an"})
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_REWORDED = {str(number): word for number, word in enumerate(_NUMBERS)} | {
    "wooden": "wood",
    "golden": "gold",
    "sandy": "sand",
    "brightly": "bright",
}


def match_open_answer(answer: str, references: References) -> RoleMatches:
    """Return the matches of a conflict, the image's answer and the text's answer in ``answer``, as whole normalised words.

    They do not exclude one another. The distractor is not matched: an open question does not display it.
    """
    normal_answer = f" {normalise(answer)} "

    def stands(words: str) -> bool:
        # Without this check, words that are only articles would occur in every answer.
        normal = normalise(words)
        return bool(normal) and f" {normal} " in normal_answer

    candidates = {CONFLICT: _CONFLICT_WORDS, IMAGE: references.get(IMAGE, ()), TEXT: references.get(TEXT, ())}
    return match_words("relaxed open matching", candidates, stands)


def normalise(text: str) -> str:
    """Return the words of ``text``, joined by spaces: lower case, no articles, numbers to ten spelled out, stemmed."""
    words = (word for word in re.findall(r"\w+", text.lower()) if word not in _ARTICLES)
    return " ".join(stem(_REWORDED.get(word, word)) for word in words)
