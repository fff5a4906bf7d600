"""Values of an answer's kind in a text: its numbers, years, dates, times, or its yes or no."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from benchmarks.values.clean_text import clean
from benchmarks.values.comparison import in_one_unit
from benchmarks.values.moments import Moment, find_moments
from benchmarks.values.numerals import Number, find_numbers
from benchmarks.values.parse import NO_WORDS, YES_WORDS, Amount, Polarity, Value
from benchmarks.values.question import read_question

_YEAR = re.compile(r"(?:19|20)[0-9]{2}(?![0-9.,'])")
_BEFORE_YEAR = re.compile(
    r"(?:^|[.!?:;(\n]|\b(?:in|im|of|for|für|since|seit|from|von|until|till|bis|by|end|ende|anfang|mid|mitte|vs\.?|and|und|to|fy"
    r"|year|jahre?s?|halbjahr|quartal|half|quarter))\s*$",
    re.IGNORECASE,
)
_ASKS_WHEN = re.compile(r"\b(?:when|years?|wann|jahre?s?|quand|année|cuándo|año)\b")
_ASKS_HOW_MUCH = re.compile(r"\b(?:how (?:many|much)|number of|wie ?(?:viele?|hoch)|anzahl|combien|cuánt[oa]s?)\b")
_LEAST_LIKE_YEARS = 500
"""The smallest whole number that a year beside it may be mistaken for."""

_BOUND = re.compile(
    r"\b(?:over|under|above|below|(?:more|less|fewer) than|at (?:least|most)|up to|über|unter|mehr als|weniger als|mindestens"
    r"|höchstens|maximal|bis zu)\s+$",
    re.IGNORECASE,
)
_APPROXIMATE = re.compile(
    r"\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|circa|ca\.?|etwa|rund|knapp|ungefähr|gut|fast)\s+$"
    r"|[~≈]\s*$",
    re.IGNORECASE,
)
_MINUS = re.compile(r"(?<!\S)-$")
_AROUND = 40
"""The characters on each side of a number in which a date that it is part of is looked for."""

_POLAR_WORD = re.compile(r"(?<![\w-])([^\W\d_]+)(?=\s*(?:[.,;:!?)\n]|$))")


@dataclass(frozen=True, slots=True)
class ReadValue:
    """A value in a cleaned text, from ``start`` to ``end``.

    ``is_bound`` is set for "over 40", ``is_rounded`` for "about 40".
    """

    text: str
    start: int
    end: int
    is_bound: bool = False
    is_rounded: bool = False


def is_readable(answer: Value) -> bool:
    """Return whether values of an answer's kind can be told from the other words of a text; names and lists cannot."""
    return isinstance(answer, Amount | Moment | Polarity)


def read_values(text: str, answer: Value, question: str = "") -> list[ReadValue]:
    """Return the values of the ``answer``'s kind in ``text``, in order, without those that the question names itself."""
    text = clean(text)
    moments = find_moments(text.lower())  # not folded, which would move what stands behind an ß
    match answer:
        case Polarity():
            return list(_polarities(text))
        case Moment():
            asked = {m.readings for m in find_moments(clean(question).lower())}
            same_kind = [m for m in moments if m.kind == answer.kind and m.readings not in asked]
            return [_read(text, m.start, m.end) for m in same_kind]
        case Amount():
            is_year = answer.number.form == "year" and not _ASKS_HOW_MUCH.search(question.casefold())
            years = list(_years(text, moments, question)) if is_year else []
            if is_year and _ASKS_WHEN.search(question.casefold()):
                return years
            # 1950 may be a number of people: a question that does not settle it has values of both kinds.
            return sorted({*years, *_amounts(text, moments, answer, question)}, key=lambda value: value.start)
    return []


def is_within_moment(text: str, start: int, end: int) -> bool:
    """Return whether a span of ``text`` is part of a date, a quarter or a time, such as the 12 of 12 March."""
    first = max(start - _AROUND, 0)
    before, span = clean(text[first:start]), clean(text[start:end])
    window = clean(text[first : end + _AROUND]).lower()
    start, end = len(before), len(before) + len(span)
    return any(m.start <= start and end <= m.end and m.end - m.start > len(span) for m in find_moments(window))


def is_clause_end(text: str, start: int) -> bool:
    """Return whether a word of ``text`` from ``start`` on ends a clause; "no" before another word is mostly no answer."""
    return _POLAR_WORD.match(text, start) is not None


def _read(text: str, start: int, end: int) -> ReadValue:
    """Return the value in a span, without the full stop of its sentence."""
    value = text[start:end].rstrip(" ,")
    if value.endswith(".") and "." not in value.split()[-1][:-1]:
        value = value[:-1]
    return ReadValue(value, start, start + len(value))


def _polarities(text: str) -> Iterator[ReadValue]:
    """Yield each yes or no that ends a clause: "no" before another word is mostly none of one kind or another."""
    for match in _POLAR_WORD.finditer(text):
        if match[1].casefold() in YES_WORDS | NO_WORDS:
            yield _read(text, *match.span(1))


def _years(text: str, moments: list[Moment], question: str) -> Iterator[ReadValue]:
    asked = read_question(question).years
    for moment in moments:
        if moment.kind in ("date", "quarter") and (year := moment.readings[0][0]) and year not in asked:
            yield _read(text, moment.start, moment.end)
    for number in find_numbers(text):
        is_year = number.form == "year" or _YEAR.match(text, number.start)
        if is_year and int(number.value) not in asked and not _overlaps(number, moments):
            yield _read(text, number.start, number.start + 4)


def _amounts(text: str, moments: list[Moment], answer: Amount, question: str) -> Iterator[ReadValue]:
    asked = read_question(question)
    named = [reading.value for number in asked.numbers for reading in number.readings]
    numbers = [
        number
        for number in find_numbers(text)
        if not _overlaps(number, moments)
        and not _is_other_form(number, answer)
        and not _is_beside_year(text, number, answer)
        and not any(reading.value in named for reading in number.readings)
    ]
    unit = answer.number.unit
    kinds = {(unit.kind, unit.dimension)} if unit else {(u.kind, u.dimension) for u in asked.units}
    if kinds:
        in_unit = [n for n in numbers if n.unit and (_kind(n) in kinds or (unit and in_one_unit(n, answer.number)))]
        numbers = in_unit or [n for n in numbers if n.unit is None]
    elif answer.number.scaled:  # 4.2 billion is no number of people
        numbers = [n for n in numbers if n.scaled] or numbers
    for number in numbers:
        # In a sentence a minus behind a word is read as a dash.
        start = number.start - (_MINUS.search(text[max(number.start - 2, 0) : number.start]) is not None)
        bound, approximate = (p.search(text[max(start - 24, 0) : start]) is not None for p in (_BOUND, _APPROXIMATE))
        yield replace(_read(text, start, number.end), is_bound=bound, is_rounded=approximate)


def _kind(number: Number) -> tuple[str, str]:
    return (number.unit.kind, number.unit.dimension) if number.unit else ("", "")


def _overlaps(number: Number, moments: list[Moment]) -> bool:
    """Return whether a number is part of a moment; 1 h 30 min has one in it, since 1 h 30 may be a time of day."""
    return any(
        number.start < m.end and m.start < number.end and not (number.start <= m.start and m.end < number.end)
        for m in moments
    )


def _is_other_form(number: Number, answer: Amount) -> bool:
    """Return whether a number is a rank, a decade or "one of", where the answer is not."""
    form = answer.number.form
    if number.form in ("ordinal", "decade") or number.form == "share" != form:
        return number.form != form
    return number.spelled and number.value == 1 and answer.number.value != 1


def _is_beside_year(text: str, number: Number, answer: Amount) -> bool:
    """Return whether a number is the year in which something was counted."""
    if not _YEAR.match(text, number.start) or (
        number.end > number.start + 4 and number.unit and number.unit.kind != "measure"
    ):
        return False
    looks_alike = answer.number.value.denominator == 1 and answer.number.value >= _LEAST_LIKE_YEARS
    return not looks_alike or _BEFORE_YEAR.search(text[: number.start][-24:]) is not None
