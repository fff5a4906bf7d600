"""The answer to a yes-or-no question that a sentence gives without a yes or a no."""

from __future__ import annotations

import re
from collections.abc import Sequence

from judges.cmc_rules.cues import EQUALITY, NEGATIONS, compiled
from judges.cmc_rules.references import ClauseWords, ParsedQuestion
from judges.cmc_rules.words import COMPARING, Token, are_opposites, content_stems, is_derived, stem

_NEGATION, _EQUAL = compiled(NEGATIONS), compiled(EQUALITY)
_VERBAL = re.compile(r"\b(?:not|never|cannot|neither|nor)\b")
_THERE = stem("there")
_PRONOUNS = frozenset({"it", "they", "this", "that", "he", "she", _THERE})
_ECHO = 0.4
_RANKED = re.compile(r"\b(?:second|third|fourth|fifth|2nd|3rd|4th|5th)[ -](?:most|least|\w+est)\b")


def implied_polarity(words: ClauseWords, question: ParsedQuestion) -> bool | None:
    """Return whether the clause affirms the question or denies it; None if it does not address it.

    A clause that repeats the question affirms it, unless it is negated, uses the opposite of a word of the question
    ("lower" for "higher"), reverses its comparison, or says that the compared things are equal.
    """
    present = frozenset(t.stem for t in words.tokens)
    negated = _NEGATION.search(words.clause.masked) is not None
    compared = question.content & COMPARING
    first = words.tokens[0].stem if words.tokens else ""
    shared = question.content & present
    echoes = bool(shared) and (first == _THERE or len(shared) / len(question.content) >= _ECHO)
    opposes = any(are_opposites(w, p) for w in compared - present for p in present - question.content)
    # The second highest is not the highest.
    opposes = opposes or bool(_RANKED.search(words.clause.masked) and not _RANKED.search(question.folded))
    if not (echoes or opposes or first in _PRONOUNS):
        return None
    if compared and _EQUAL.search(words.clause.masked):
        return negated
    if not (echoes or opposes or negated):
        return None
    if negated and not _VERBAL.search(words.clause.masked):
        # "No" as a determiner negates the following noun, so the clause must name what is compared or echo the question.
        repeated = any(w in present or any(is_derived(w, p) for p in present) for w in compared)
        if not (echoes or opposes) or (compared and not repeated):
            return None
    return not (negated ^ opposes ^ _is_reversed(words.tokens, question))


def _is_reversed(present: Sequence[Token], question: ParsedQuestion) -> bool:
    """Return whether the two sides of the question's comparison have changed places here."""
    stems = {t.stem for t in present}
    for pivot in ("than", *sorted(question.content & COMPARING)):
        if pivot in stems and any(t.stem == pivot for t in question.tokens):
            asked_left, asked_right = _sides(question.tokens, pivot)
            left, right = _sides(present, pivot)
            only_left, only_right = asked_left - asked_right, asked_right - asked_left
            if only_left & right and only_right & left and not only_left & left:
                return True
    return False


def _sides(words: Sequence[Token], pivot: str) -> tuple[frozenset[str], frozenset[str]]:
    at = next(i for i, t in enumerate(words) if t.stem == pivot)
    return frozenset(content_stems(words[:at])) - COMPARING, frozenset(content_stems(words[at + 1 :])) - COMPARING
