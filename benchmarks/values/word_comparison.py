"""Comparison of two names or other short texts, word by word."""

from __future__ import annotations

import re

from benchmarks.values.comparison_verdicts import (
    FORM,
    LETTERS,
    MORE_WORDS,
    ORDER,
    PARAPHRASE,
    PART,
    SAME,
    SHORT,
    SPELLING,
    Comparison,
    different,
)
from benchmarks.values.name_words import OTHER_WITH, initials, same_letters
from benchmarks.values.parse_value import Words

_SIGNS = re.compile(r"[<>=≤≥≠+*/^√|→∧∨¬&]")
_CONSONANTS = re.compile("[b-df-hj-np-tv-xz]{2,5}")


def compare_words(a: Words, b: Words) -> Comparison:
    """Return whether two short texts are the same name."""
    if in_order := _signs_and_order(a, b):
        return in_order
    first, second = set(a.words), set(b.words)
    if first == second:
        return ORDER if len(a.words) == len(b.words) else MORE_WORDS
    shorter, longer = sorted((a, b), key=lambda x: len(x.words))
    if len(shorter.words) == 1 and (short := _as_letters(shorter.words[0], longer)):
        return short
    if first <= second or second <= first:
        if other := (first ^ second) & OTHER_WITH:
            return different(f"{min(other)!r} makes another value")
        return PART if len(longer.words) < 4 else MORE_WORDS
    if len(a.words) == len(b.words) and (in_pairs := _word_by_word(a, b)):
        return in_pairs
    sentence = max(len(a.words), len(b.words)) > 5
    if sentence and len(first & second) * 2 >= min(len(first), len(second)):
        return PARAPHRASE
    return different("the words differ")


def _signs_and_order(a: Words, b: Words) -> Comparison | None:
    """Return what the signs, the order of the words and the countries tell; None if nothing."""
    signs = [_SIGNS.findall(x.folded) for x in (a, b)]
    if signs[0] != signs[1] and (a.words == b.words or all(signs)):
        return different("the signs differ")
    if a.words == b.words or "".join(a.words) == "".join(b.words):
        return SAME
    if any(signs) and sorted(a.words) == sorted(b.words):
        return different("the order differs")
    if a.country and b.country:
        return SAME if a.country == b.country else different("two countries")
    return None


def _as_letters(word: str, longer: Words) -> Comparison | None:
    """Return how a word stands for others by some of their letters; None if it does not."""
    letters = (initials(longer.words), initials(longer.folded.split()))
    if min(len(longer.words), len(word)) > 1 and word in letters:
        return SHORT
    if len(longer.words) < 4 and _abbreviates(word, longer.folded):
        return LETTERS  # XL, extra large
    return None


def _word_by_word(a: Words, b: Words) -> Comparison | None:
    """Return how equally many words are other forms of each other; None if they are not."""
    pairs = [(x, y) for x, y in zip(a.words, b.words, strict=True) if x != y]
    x, y = sorted(pairs[0], key=len) if len(pairs) == 1 else ("", "")
    if y and same_letters(x, y) and OTHER_WITH.isdisjoint((x, y)):
        return SPELLING
    if len(x) == 1 < len(a.words) and x.isalpha() and y.startswith(x):
        return SHORT  # J. Smith
    if all(_derived(x, y) for x, y in pairs) and not (a.capital and b.capital):
        return FORM
    return None


def _abbreviates(short: str, text: str) -> bool:
    """Return whether a text has the consonants of a short word in order, the first of them at its start."""
    left = iter(text)
    return _CONSONANTS.fullmatch(short) is not None and short[0] in text[:2] and all(x in left for x in short)


def _derived(a: str, b: str) -> bool:
    return a[:5] == b[:5] and len(a) >= 5 and len(b) >= 5 and abs(len(a) - len(b)) <= 3
