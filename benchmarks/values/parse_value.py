"""Reading of a short text as a value: yes or no, a date or time, a number with its unit, a range, a list, or words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from benchmarks.values.clean_text import clean, fold
from benchmarks.values.dates_and_times import Moment, find_moments
from benchmarks.values.name_words import name_words, territories, word_set
from benchmarks.values.numerals import Number, find_numbers

LONGEST = 2_000
"""Characters of a value; a longer text is compared letter by letter."""

_MARKS = " \t\n\"'`*_.,;:!?()[]{}<>|#"
_MARKS_AROUND = " \t\n\"'`*_,;:!?[]{}<>|#"
_NO_NOUN = "half|quarter|third|fourth|fifth|dozen|hundred|thousand|million|and|or|to|is"
"""After "a", what makes it part of a number, or a letter."""
_LEADING = re.compile(
    r"(?:[\s\"'`*_;:!?(\[{|#]|\.(?![0-9])"
    r"|[A-Za-zΔλμρ]{1,3}\s?=(?=\s?[-+.0-9])"
    rf"|(?:[Tt]he|[Ee]very|[Aa]n?(?=\s[a-z]{{2}})(?!\s(?:{_NO_NOUN})\b)"
    r"|[Ii]t is|[Ii]t's|is|was|are|were|equals?|value of|[Aa] total of)(?=\s))+"
)
_APPROXIMATE = re.compile(
    r"(?:about|around|approximately|approx\.?|roughly|circa|ca\.?|nearly|almost|some|exactly|~|≈|=|etwa|environ|约)\s*",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"(?:over|under|above|below|more than|less than|fewer than|at least|at most|up to|<=?|>=?|≤|≥)\s*", re.IGNORECASE
)
_BOUND_AFTER = re.compile(
    r"\+$|\b(?:or|and) (?:more|less|fewer|over|above|below|older|younger|higher|lower)$", re.IGNORECASE
)
YES_WORDS = word_set("yes yeah yep yup true correct right affirmative indeed ja oui sí si sim はい 是 是的 对 正确")
NO_WORDS = word_set("no nope nah false incorrect wrong negative nein non não nee いいえ 否 不 不是 错 错误")
_REPEATS = re.compile(
    r"(?:it|they|he|she|there|that|this|i|we|sales) "
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would)(?: ?n[o']t)?"
)
_FIRST_STOP = re.compile(r"[.!:;,-]")
_FISCAL = re.compile(r"^FY ?'?(?=[12][0-9]{3}|[0-9]{2}/)", re.IGNORECASE)
_TO = re.compile(r"\s*(?:-|–|to|until|till|through|bis|à|a|and)\s*")
_BETWEEN = re.compile(r"(?:between|from|von|de)\s+$", re.IGNORECASE)
_SEASON = re.compile(r"([12][0-9])([0-9]{2})[/-]([0-9]{2})")
_BOTH = re.compile(r"^both ", re.IGNORECASE)
_BEFORE_MOMENT = re.compile(
    r"^(?:on|in|at|um|am|le|by) (?:the )?(?:night of )?|^(?:mon|tues|wednes|thurs|fri|satur|sun)day,? "
)
_SEPARATOR = re.compile(r"\s*(?:,\s*(?:and|or|und|et|y|&)\s|;|\n|&|,(?!\d)|\s(?:and|und|et|y|e)\s|\+\s)\s*")


@dataclass(frozen=True, slots=True)
class Polarity:
    """A yes or a no; ``more`` is set if the text goes on and does not only repeat it."""

    truth: bool
    more: bool = False


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, with the noun beside it and whether it is only a bound ("over 43")."""

    number: Number
    noun: tuple[str, ...] = ()
    bound: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of two amounts or two moments."""

    low: Value
    high: Value


@dataclass(frozen=True, slots=True)
class Listing:
    """Two values or more; their order counts only where the question asks for it."""

    parts: tuple[Value, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """A name or another short text."""

    folded: str
    words: tuple[str, ...]
    capital: bool

    @property
    def country(self) -> str:
        """The code of the country that it names; "" if it names none."""
        return territories().get(self.folded) or territories().get(" ".join(self.words), "")


Value = Polarity | Amount | Moment | Span | Listing | Words


@lru_cache(maxsize=4096)
def parse(text: str) -> Value:
    """Return the value that a short text is; every text is at least words, and none fails."""
    text = _FISCAL.sub("", clean(text[:LONGEST]).strip())
    lead = _LEADING.match(text)
    bare = text[lead.end() if lead else 0 :] or text
    bare = bare.strip(_MARKS_AROUND).rstrip(".") or bare
    if bare.count("(") != bare.count(")"):
        bare = bare.strip("()")
    forms = (_polarity, _season, _moment, _span, _amount, _listing, _words)
    return next(value for form in forms if (value := form(bare)))


def _polarity(text: str) -> Polarity | None:
    first, comma, rest = (part.strip() for part in _FIRST_STOP.sub(",", fold(text), count=1).partition(","))
    truth = True if first in YES_WORDS else False if first in NO_WORDS else None
    if truth is None or (rest and not comma):
        return None
    rest = rest.strip(_MARKS)
    return Polarity(truth, bool(rest) and not _REPEATS.fullmatch(rest))


def _season(text: str) -> Span | None:
    match = _SEASON.fullmatch(text)
    if not match or int(match[3]) != (int(match[2]) + 1) % 100:
        return None
    first = int(match[1] + match[2])
    return Span(*(Amount(find_numbers(str(year))[0]) for year in (first, first + 1)))


def _span(text: str) -> Span | None:
    for ends in (find_moments(fold(text)), find_numbers(text)):
        if len(ends) != 2:
            continue
        first, second = ends
        before, between, after = text[: first.start], text[first.end : second.start], text[second.end :]
        if isinstance(second, Number) and between == "" and second.value < 0:
            second, between = replace(second, readings=tuple(replace(r, value=-r.value) for r in second.readings)), "-"
        if _makes_a_range(before, between) and (span := _from_to(first, second, after)):
            return span
    return None


def _makes_a_range(before: str, between: str) -> bool:
    """Return whether the words before and between two values make a range of them."""
    if not _TO.fullmatch(between.casefold()):
        return False
    return _BETWEEN.fullmatch(before) is not None or (
        not before.strip(" ~") and between.strip().casefold() not in ("and", "a")
    )


def _from_to(first: Number | Moment, second: Number | Moment, after: str) -> Span | None:
    if isinstance(first, Number) and isinstance(second, Number):
        if first.unit is None and first.form != "year":
            first = replace(first, unit=second.unit)
        noun = name_words(fold(after)) if after.strip() else ()
        return Span(Amount(first, noun), Amount(second, noun)) if len(noun) < 4 else None
    if isinstance(first, Moment) and isinstance(second, Moment) and not after.strip(" ."):
        return Span(_with_year_of(first, second), second)
    return None


def _with_year_of(first: Moment, second: Moment) -> Moment:
    if first.kind == second.kind == "date" and first.readings[0][0] is None:
        return replace(first, readings=tuple((second.readings[0][0], *parts[1:]) for parts in first.readings))
    return first


def _moment(text: str) -> Moment | None:
    folded = _BEFORE_MOMENT.sub("", fold(text)).strip(_MARKS)
    moments = find_moments(folded)
    if len(moments) != 1:
        return None
    rest = folded[: moments[0].start] + folded[moments[0].end :]
    return None if rest.strip(" .,'") else moments[0]


def _amount(text: str) -> Amount | None:
    rest, bound = text, ""
    while match := _APPROXIMATE.match(rest) or _BOUND.match(rest):
        bound = bound or (match[0].strip() if _BOUND.match(rest) else "")
        rest = rest[match.end() :]
    after_bound = _BOUND_AFTER.search(rest)
    if after_bound:
        rest, bound = rest[: after_bound.start()].rstrip(), after_bound[0]
    numbers = find_numbers(rest)
    if len(numbers) != 1 or rest[: numbers[0].start].strip(" ("):
        return None
    after = rest[numbers[0].end :].strip(" .)")
    if not after:
        return Amount(numbers[0], (), bound)
    noun = name_words(fold(after))
    # "12 years old" is an amount; "7 UP" and "2 Fast 2 Furious" are names.
    named = any(w[:1].isupper() for w in after.split())
    return Amount(numbers[0], noun, bound) if len(noun) <= 3 and not named and after[:1].isalpha() else None


def _listing(text: str) -> Listing | None:
    parts = [part.strip(_MARKS) for part in _SEPARATOR.split(_BOTH.sub("", text))]
    parts = [part for part in parts if part]
    if not 2 <= len(parts) <= 40 or any(len(part.split()) > 5 for part in parts):
        return None
    return Listing(tuple(map(parse, parts)), tuple(parts))


def _words(text: str) -> Words:
    folded = fold(text).strip(_MARKS)
    return Words(folded, name_words(folded), text[:1].isupper())
