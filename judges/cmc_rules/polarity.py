"""What a sentence without a yes or a no answers to a yes-or-no question."""

from __future__ import annotations

import re
from collections.abc import Sequence

from judges.cmc_rules.cues import EQUALITY, NEGATIONS, compiled
from judges.cmc_rules.references import ClauseWords, ParsedQuestion
from judges.cmc_rules.words import COMPARING, Token, content, derived, opposed, stem

_NEGATION, _EQUAL = compiled(NEGATIONS), compiled(EQUALITY)
_VERBAL = re.compile(r"\b(?:not|never|cannot|neither|nor)\b")
_THERE = stem("there")
_PRONOUNS = frozenset({"it", "they", "this", "that", "he", "she", _THERE})
_ECHO = 0.4


def implied(words: ClauseWords, question: ParsedQuestion) -> bool | None:
    """Whether the clause affirms the question or denies it; None where it does not speak to it.

    A clause that repeats the question affirms it, unless it is negated, uses the opposite of a word of the question
    ("lower" for "higher"), turns its comparison round, or says that what is compared is equal.
    """
    present = frozenset(t.stem for t in words.tokens)
    negated = _NEGATION.search(words.clause.masked) is not None
    compared = question.content & COMPARING
    first = words.tokens[0].stem if words.tokens else ""
    shared = question.content & present
    echoes = bool(shared) and (first == _THERE or len(shared) / len(question.content) >= _ECHO)
    opposes = any(opposed(w, p) for w in compared - present for p in present - question.content)
    if not (echoes or opposes or first in _PRONOUNS):
        return None
    if compared and _EQUAL.search(words.clause.masked):
        return negated
    if not (echoes or opposes or negated):
        return None
    if negated and not _VERBAL.search(words.clause.masked):
        # "No" as a determiner denies the noun behind it, so what is compared must be named, or the question's words be.
        repeated = any(w in present or any(derived(w, p) for p in present) for w in compared)
        if not (echoes or opposes) or (compared and not repeated):
            return None
    return not (negated ^ opposes ^ _turned(words.tokens, question))


def _turned(present: Sequence[Token], question: ParsedQuestion) -> bool:
    """Whether what stood before the comparison in the question stands after it here, and the other way round."""
    said = {t.stem for t in present}
    for pivot in ("than", *sorted(question.content & COMPARING)):
        if pivot in said and any(t.stem == pivot for t in question.tokens):
            asked_left, asked_right = _sides(question.tokens, pivot)
            left, right = _sides(present, pivot)
            one, other = asked_left - asked_right, asked_right - asked_left
            if one & right and other & left and not one & left:
                return True
    return False


def _sides(words: Sequence[Token], pivot: str) -> tuple[frozenset[str], frozenset[str]]:
    at = next(i for i, t in enumerate(words) if t.stem == pivot)
    return frozenset(content(words[:at])) - COMPARING, frozenset(content(words[at + 1 :])) - COMPARING
