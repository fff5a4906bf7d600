"""Relaxed matching of open answers (CLASH, Appendix A.2)."""

from __future__ import annotations

import re

from benchmarks.clash.constants import CONFLICT, IMAGE, TEXT
from benchmarks.text.stemming import stem
from judges.string_match.role_matches import Found, References, by_words

_CONFLICT_WORDS = ("conflict", "contradict")
_ARTICLES = frozenset({"the", "a", "an"})
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_REWORDED = {str(number): word for number, word in enumerate(_NUMBERS)} | {
    "wooden": "wood",
    "golden": "gold",
    "sandy": "sand",
    "brightly": "bright",
}


def open_match(answer: str, references: References) -> Found:
    """Which of a conflict, the image's answer and the text's answer stand in ``answer``, as whole words, normalised.

    They do not exclude one another. The distractor is not looked for: an open question does not show it.
    """
    said = f" {normalise(answer)} "

    def stands(words: str) -> bool:
        # Words that are articles alone would otherwise stand in every answer.
        normal = normalise(words)
        return bool(normal) and f" {normal} " in said

    wanted = {CONFLICT: _CONFLICT_WORDS, IMAGE: references.get(IMAGE, ()), TEXT: references.get(TEXT, ())}
    return by_words("relaxed open matching", wanted, stands)


def normalise(text: str) -> str:
    """The words of ``text``, joined by spaces: small letters, no articles, numbers to ten in words, stemmed."""
    words = (word for word in re.findall(r"\w+", text.lower()) if word not in _ARTICLES)
    return " ".join(stem(_REWORDED.get(word, word)) for word in words)
