"""A number as an answer writes it: its digits, and the separators, sign, currency and unit around them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from benchmarks.values.clean_text import clean, fold
from benchmarks.values.dates_and_times import find_moments
from benchmarks.values.numerals import ORDINALS, WORDS
from benchmarks.values.units import MONEY_SIGNS, money

_NUMBER = re.compile(
    r"(?P<before>[^\d]{0,40}?)(?P<digits>\d+(?:[.,'\u2019\u00a0\u202f ]\d+)*|[.,]\d+)"
    r"(?P<after>(?:\s?(?:/|of|out of)\s?\d+(?:\.\d+)?)?\D{0,60}[23]?)"
)
_TOTAL = re.compile(r"\s?(?:/|of|out of)\s?(\d+(?:\.\d+)?)")
_LABEL = re.compile(r"[^\W\d_]+(?:[ .#]|\. )*")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)(?!\w)")
_PRICE_ENDS = (99, 95)
_SPELLED = 20
_LONGEST = 200
"""The maximum number of characters of a number; a float holds any of them."""


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A positive number with the text around it; ``units`` counts the last decimal place, so 4.50 has 450 of them.

    ``group`` separates groups of digits (``lakhs``: of two, after the last three), ``mark`` the decimals; ``group`` is empty if
    the number is too small to show one. ``most`` is the total that the text itself names, as 5 in "3 of 5", or 0.
    ``words`` holds the numbers from 0 on in words, for a number that is spelled.
    """

    units: int
    decimals: int = 0
    before: str = ""
    after: str = ""
    group: str = ""
    mark: str = "."
    lakhs: bool = False
    bare: bool = False
    ordinal: bool = False
    most: float = 0
    words: tuple[str, ...] = ()
    is_ambiguous: bool = False
    """True where its only separator may stand for thousands or for decimals, as in 13.500."""

    @property
    def value(self) -> float:
        return self.units / float(10**self.decimals)

    @property
    def surroundings(self) -> tuple[str, ...]:
        """The sign, currency, unit and spelling: what a number of the same unit has in common with it."""
        return (self.before, "" if self.ordinal else self.after, "ordinal" if self.ordinal else "", *self.words[:1])

    @property
    def zeros(self) -> int:
        """The number of zeros at its end."""
        digits = str(self.units)
        return len(digits) - len(digits.rstrip("0")) if self.units else 0

    def written(self, units: int) -> str | None:
        """Return another number in the same way; None if it cannot be written so."""
        if self.words:
            word = self.words[units] if 0 <= units < len(self.words) else ""
            if not word:
                return None
            return self.before + (word.capitalize() if self.bare else word) + self.after
        whole, fraction = divmod(units, 10**self.decimals)
        if self.is_ambiguous and whole > 999:
            return None
        text = self._grouped(str(whole)) if self.group else str(whole)
        if self.decimals:
            text = ("" if self.bare and not whole else text) + f"{self.mark}{fraction:0{self.decimals}d}"
        return self.before + text + (_ordinal_end(units) + self.after[2:] if self.ordinal else self.after)

    def _grouped(self, digits: str) -> str:
        size, parts = 3, []
        while digits:
            parts.append(digits[-size:])
            digits, size = digits[:-size], 2 if self.lakhs else 3
        return self.group.join(reversed(parts))


def read_number(text: str) -> WrittenNumber | None:
    """Return the number that a short text is; None for names, dates and texts with several numbers."""
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    if spelled := _spelled(text):
        return spelled
    match = _NUMBER.fullmatch(text)
    if match is None or not _is_beside_number(match["before"], match["after"]) or find_moments(fold(clean(text))):
        return None
    number = _digits(match["digits"])
    if number is None:
        return None
    total = _TOTAL.match(match["after"])
    if total and float(total[1]) < number.value:
        return None  # 2010/11
    number = replace(
        number,
        before=match["before"],
        after=match["after"],
        ordinal=not number.decimals and _ORDINAL.match(match["after"]) is not None,
        most=float(total[1]) if total else 0,
    )
    return _with_price_end(number)


def _is_beside_number(before: str, after: str) -> bool:
    """Return whether the texts around a numeral are a sign, a currency, a unit or a label of one word: "Week 12", not a name."""
    word = before.strip(" ~≈<>=≤≥+-−–(.").rstrip(".")
    is_label = not word or word in MONEY_SIGNS or money(word) is not None or _LABEL.fullmatch(before) is not None
    return is_label and len(after.split()) <= 3 and not any(w[:1].isupper() and len(w) > 4 for w in after.split())


def _with_price_end(number: WrittenNumber) -> WrittenNumber:
    """Move the fraction of a price such as 19.99 into the text behind the number."""
    whole, fraction = divmod(number.units, 10**number.decimals)
    if whole < 5 or number.decimals != 2 or fraction not in _PRICE_ENDS:
        return number
    return replace(number, units=whole, decimals=0, after=f"{number.mark}{fraction}{number.after}")


def _spelled(text: str) -> WrittenNumber | None:
    first, space, rest = text.partition(" ")
    folded = first.casefold()
    for words in (WORDS, ORDINALS):
        if folded in words and words[folded] <= _SPELLED and len(rest.split()) <= 2 and not any(map(str.isdigit, rest)):
            by_number = {n: word for word, n in reversed(words.items())}
            spellings = tuple(by_number.get(n, "") for n in range(_SPELLED + 1))
            return WrittenNumber(words[folded], after=space + rest, words=spellings, bare=first[:1].isupper())
    return None


def _digits(digits: str) -> WrittenNumber | None:
    """Return the number of a numeral, with its separators; None if they separate something else, as in 12.03.2019."""
    separators = [c for c in digits if not c.isdigit()]
    if not separators:
        return None if _has_leading_zero(digits) else WrittenNumber(int(digits))
    mark, group = separators[-1], separators[0]
    parts = re.split(r"\D", digits)
    kinds = len(set(separators))
    if kinds > 2 or (kinds == 2 and separators.count(mark) > 1):
        return None
    is_group = _grouped(parts) if kinds == 1 else ""
    if is_group and (len(separators) > 1 or mark != "."):
        return WrittenNumber(int("".join(parts)), group=group, lakhs=is_group == "lakhs")
    if mark not in ".," or (kinds == 1 and len(separators) > 1):
        return None
    whole, fraction = parts[:-1], parts[-1]
    whole_group = _grouped(whole) if len(whole) > 1 else ""
    if bool(whole_group) != (len(whole) > 1) or _has_leading_zero(whole[0]):
        return None
    return WrittenNumber(
        int("".join(parts)),
        decimals=len(fraction),
        group=group if whole_group else "",
        mark=mark,
        lakhs=whole_group == "lakhs",
        bare=not whole[0],
        is_ambiguous=bool(is_group),
    )


def _has_leading_zero(digits: str) -> bool:
    return len(digits) > 1 and digits[0] == "0"


def _grouped(parts: list[str]) -> str:
    """Return how parts of digits are grouped: "thousands", "lakhs" or not at all ("")."""
    first, *middle, last = parts
    if not 1 <= len(first) <= 3 or first[0] == "0" or len(last) != 3:
        return ""
    sizes = {len(part) for part in middle}
    return "thousands" if sizes <= {3} else "lakhs" if sizes == {2} and len(first) <= 2 else ""


def _ordinal_end(number: int) -> str:
    return "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
