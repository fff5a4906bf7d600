"""Mentions that do not count: negated, rejected, replaced, the lesser side, an operand, a range's end, about a person."""

from __future__ import annotations

import re

from judges.cmc_rules import cues
from judges.cmc_rules.compounds import Quantity
from judges.cmc_rules.cues import compiled
from judges.cmc_rules.lazy_pattern import lazy
from judges.cmc_rules.quantities import find_quantities
from judges.cmc_rules.references import ClauseWords

_NEAR, _NEARER = 120, 60
"""The number of characters on either side of a mention in which it can be retracted."""

_NEGATION, _REJECTION, _COMPARISON = compiled(cues.NEGATIONS), compiled(cues.REJECTIONS), compiled(cues.COMPARISONS)
_BEATEN = lazy(rf"{compiled(cues.BEATEN).pattern}\s+(?:the\s+)?$")
_LESSER = lazy(rf"\s+{compiled(cues.LESSER).pattern}")
_OF_A_PERSON = lazy(r"\s*(?:who|whose)\b(?:(?!\b(?:is|was|be)\b)[^,:(])*$")
_SUBJECT = lazy(r"[,:]|\band\b|^\s*(?:it|they|there|he|she|i|we)\b")
_OTHERWISE = lazy(r"^,|\bbut\b|[.:(]")
_RISING = lazy(rf"\b(?:{cues.RISING})\b.*\bto\s+[$€£]?$")
_RESULT = "is|was|equals?|gets?|gives?|giving|makes?|making|yields?|results?"
_OPERANDS = lazy(rf"\b{cues.OPERANDS}\b(?:(?!\b(?:{_RESULT})\b|=).){{0,40}}$")
_REPLACED = lazy(r"\s*(?:->|=>|→)\s*[$€£]?[0-9\ue000-\uf8ff]")
_OPERATION = (
    r"\s*(?:%|[a-zω°]{1,5})?\s*\)?\s*(?:[+*/×·÷]|-(?=\s)|divided by|times|minus|plus|multiplied by)\s*\(?[$€£]?"
)
_OPERATOR_AFTER, _OPERATOR_BEFORE = lazy(_OPERATION + "[0-9]"), lazy(f"[0-9]{_OPERATION}$")
_TO = r"\s*(?:%|[a-z°]{1,8})?\s*(?:-|—|to|through|until|till)\s*[$€£]?"
_RANGE_AFTER, _RANGE_BEFORE = lazy(_TO + "[0-9]"), lazy(rf"[0-9]{_TO}$")
_BETWEEN = lazy(r"\bbetween\b[^,;]{0,30}$")
_AND_AFTER = lazy(r"\s*(?:%|\w+)?\s*and\s+[$€£]?[0-9]")
_AND_BEFORE = lazy(r"\bbetween\s+[$€£]?[0-9][^,;]{0,20} and\s*$")


def is_retracted(words: ClauseWords, start: int, end: int, *, numeric: bool, spanned: bool = False) -> bool:
    """Return whether the context of the mention from ``start`` to ``end`` prevents it from being a commitment.

    With ``spanned``, the end of a range counts.
    """
    text = words.clause.masked
    before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    near_text = before[-_NEARER:]
    if _negated(near_text) or _REPLACED.match(after) or _rejected(after[:_NEARER]) or _compared(near_text, numeric):
        return True
    if not numeric:
        if words.clause.lead in ("who", "whose") and _OF_A_PERSON.match(text[:start]):
            return True
        return _BEATEN.search(near_text) is not None or _LESSER.match(after) is not None
    quantity = next((q for q in words.quantities if q.start == start), None)
    return not spanned and (_operand(quantity, before, after) or _in_range(quantity, before, after))


def _after_last(pattern: re.Pattern[str], text: str) -> str | None:
    """Return the text after the pattern's last match, or None."""
    ends = [m.end() for m in pattern.finditer(text)]
    return text[ends[-1] :] if ends else None


def _negated(before: str) -> bool:
    between = _after_last(_NEGATION, before)
    if between is None or len(between.split()) > 6 or _OTHERWISE.search(between):
        return False
    determiner = before[: len(before) - len(between)].endswith("no")
    return not (determiner and "," in between)


def _rejected(after: str) -> bool:
    match = _REJECTION.search(after)
    between = after[: match.start()] if match else ""
    return match is not None and len(between.split()) <= 4 and not _SUBJECT.search(between)


def _compared(before: str, numeric: bool) -> bool:
    """Return whether a mention is the lesser side of a comparison; a number needs another: "more than 20" says about 20."""
    between = _after_last(_COMPARISON, before)
    if between is None or len(between.split()) > 4:
        return False
    return not numeric or bool(find_quantities(before[: len(before) - len(between)]))


def _operand(quantity: Quantity | None, before: str, after: str) -> bool:
    if quantity is not None and quantity.looks_like_a_year:
        return False
    result = find_quantities(after.rpartition("=")[2])[:1] if "=" in after else ()
    if result:
        return quantity is None or quantity.value != result[0].value
    if _OPERATOR_AFTER.match(after) or _OPERATOR_BEFORE.search(before):
        return "=" not in before
    return _OPERANDS.search(before) is not None


def _in_range(quantity: Quantity | None, before: str, after: str) -> bool:
    if _RISING.search(before) or (
        quantity is not None
        and quantity.looks_like_a_year
        and re.match(rf"[-/]{quantity.value + 1:.0f}(?![0-9])", after)
    ):
        return False
    if _RANGE_AFTER.match(after) or _RANGE_BEFORE.search(before):
        return True
    return _BETWEEN.search(before) is not None and bool(_AND_AFTER.match(after) or _AND_BEFORE.search(before))
