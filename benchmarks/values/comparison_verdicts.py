"""Verdicts on a pair of values, with their reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["same", "different", "unclear"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A verdict and the reason for it, as a phrase.

    ``in_form`` is set if an unclear pair may be one value in two forms: where no other value comes into question, it is one.
    """

    verdict: Verdict
    reason: str
    in_form: bool = False


SAME = Comparison("same", "the same value")
NO_UNIT = Comparison("unclear", "only one of them names a unit", True)
NO_MAGNITUDE = Comparison("unclear", "only one of them says thousands or millions", True)
ROUNDED = Comparison("unclear", "one may be the other, rounded", True)
SEPARATOR = Comparison("unclear", "a point or comma may stand for thousands or for decimals", True)
LESS_EXACT = Comparison("unclear", "one is more exact than the other", True)
MORE_WORDS = Comparison("unclear", "one says more than the other")
PART = Comparison("unclear", "one is part of the other's name", True)
SPELLING = Comparison("unclear", "one may be a misspelling of the other", True)
FORM = Comparison("unclear", "one may be another form of the other's word")
SHORT = Comparison("unclear", "one may be short for the other", True)
LETTERS = Comparison("unclear", "one may be letters of the other")
BOUND = Comparison("unclear", "one is only a bound", True)
COUNT = Comparison("unclear", "one is a share, the other may be its count", True)
ORDER = Comparison("unclear", "the same words in another order", True)
NOUN = Comparison("unclear", "they may count different things", True)
AMBIGUOUS = Comparison("unclear", "a date or time can be read in two ways", True)
PARAPHRASE = Comparison("unclear", "one may be the other in other words")
INCOMPLETE = Comparison("unclear", "one lists more than the other")
PERIOD = Comparison("unclear", "only one of them says per what time", True)
RANK = Comparison("unclear", "one is a rank")
NUMERALS = Comparison("unclear", "one may be the other in Roman or Chinese numerals", True)
CURRENCIES = Comparison("unclear", "the currencies may differ")


def different(reason: str) -> Comparison:
    """Return that two values differ, for this reason."""
    return Comparison("different", reason)


def of_parts(parts: Sequence[Comparison]) -> Comparison:
    """Return the verdict on wholes whose parts were compared: different if one is, unclear if one is."""
    return next((p for verdict in ("different", "unclear") for p in parts if p.verdict == verdict), SAME)
