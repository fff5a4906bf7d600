"""Values of an answer's kind in a text: its numbers, years, dates, times, or its yes or no."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.cmc_bench.construction.value_context import (
    ASKS_WHEN,
    BEFORE_YEAR,
    CHANGE,
    SIGN,
    asks_change,
    doubt,
    is_count,
    is_fall,
    is_part,
)
from benchmarks.values import compare
from benchmarks.values.clean_text import clean, fold
from benchmarks.values.dates_and_times import Moment, find_moments
from benchmarks.values.name_words import word_set, words_of
from benchmarks.values.number_comparison import in_one_unit
from benchmarks.values.numerals import Number, find_numbers
from benchmarks.values.parse_value import NO_WORDS, YES_WORDS, Amount, Polarity, Value, parse
from benchmarks.values.question_facts import read_question

_YEAR = re.compile(r"(?:19|20)[0-9]{2}(?![0-9]|[.,'][0-9])")
_ASKS_HOW_MUCH = re.compile(r"\b(?:how (?:many|much)|number of|wie ?(?:viele?|hoch)|anzahl|combien|cuánt[oa]s?)\b")
_LEAST_LIKE_YEARS = 500
"""The smallest whole number that a year beside it may be mistaken for."""

_APPROXIMATE = re.compile(
    r"\b(?:about|around|approximately|approx\.?|roughly|some|circa|ca\.?|etwa|rund|ungefähr|gut)\s+$"
    r"|[~≈]\s*$",
    re.IGNORECASE,
)
_NOUN = re.compile(r" ([^\W\d_]{3,})")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n\s*\n")
_STEM = 5
_EMPTY = frozenset(
    word[:_STEM]
    for word in word_set("""
    a an the of in on at to by for from with and or as is are was were be been it its they them there this that these those he she
    we you i his her their has have had do does did not no what which who when where how many much came come comes come reached
    stood said says total number value values amount figure answer result according source about around some roughly than more
    most least all each per so also now then only up down end overall after before year years month day one two three four five
    six seven eight nine ten der die das dem den des ein eine einen einem und oder ist war waren es sie er im am zum zur bei mit
    von für auf wie viele viel hoch was welche welcher welches wert zahl anzahl gesamt laut bericht quelle betrug betrugen lag
    lagen jahr jahre waren sind wurde wurden gab gibt hat haben rund etwa davon stand ende
""")
)
"""The beginnings of words that say nothing about what a number is."""
_UNITS_OF_COUNT = frozenset({"units", "pieces", "items", "points", "stück", "einheiten", "punkte"})
_PRONOUNS = frozenset({"it", "they", "them", "es", "sie", "there"})
_MINUS = re.compile(r"(?<!\S)-$")
_AROUND = 40
"""The characters on each side of a number in which a date that it is part of is looked for."""

_POLAR_WORD = re.compile(r"(?<![\w-])([^\W\d_]+)(?=\s*(?:[,;:!?)\n]|\.(?!\s*[0-9])|$))")
_YES = re.compile(r"\b(?:yes|ja|oui|sí)\b", re.IGNORECASE)
_LIMITED = re.compile(r"[\s,;.:]*(?:but|aber|however|though|or|oder|and no|und nein)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReadValue:
    """A value in a cleaned text, from ``start`` to ``end``.

    ``doubt`` says why it may not be stated, as for "over 40"; ``is_rounded`` is set for "about 40".
    """

    text: str
    start: int
    end: int
    doubt: str = ""
    is_rounded: bool = False


def is_readable(answer: Value) -> bool:
    """Return whether values of an answer's kind can be told from the other words of a text; names and lists cannot."""
    return isinstance(answer, Amount | Moment | Polarity)


def read_values(text: str, answer_text: str, question: str = "") -> list[ReadValue]:
    """Return the values of the answer's kind in ``text``, in order, without those that the question names itself."""
    text, answer = clean(text), parse(answer_text)
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
            if is_year and ASKS_WHEN.search(question.casefold()):
                return years
            # 1950 may be a number of people: a question that does not settle it has values of both kinds.
            return sorted(
                {*years, *_amounts(text, moments, answer_text, answer, question)}, key=lambda value: value.start
            )
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
    """Yield each yes or no that ends a clause: "no" before another word is mostly none of one kind or another.

    Beside one of them, a yes anywhere is in doubt, such as in "yes at first, then no", and so is "yes, but".
    """
    ends = [match for match in _POLAR_WORD.finditer(text) if match[1].casefold() in YES_WORDS | NO_WORDS]
    is_mixed = len({match[1].casefold() in YES_WORDS for match in ends} | {True for _ in _YES.finditer(text)}) > 1
    for match in ends:
        is_doubtful = is_mixed or _LIMITED.match(text, match.end()) is not None
        yield replace(_read(text, *match.span(1)), doubt="beside another yes or no, or a but" if is_doubtful else "")


def _years(text: str, moments: list[Moment], question: str) -> Iterator[ReadValue]:
    asked = read_question(question).years
    for moment in moments:
        if moment.kind in ("date", "quarter") and (year := moment.readings[0][0]) and year not in asked:
            yield _read(text, moment.start, moment.end)
    for number in find_numbers(text):
        is_year = number.form == "year" or _YEAR.match(text, number.start)
        if is_year and (
            number.unit or is_part(text, number.start, number.end, question) or is_count(text, number.start, number.end)
        ):
            continue
        if is_year and int(number.value) not in asked and not _overlaps(number, moments):
            yield _read(text, number.start, number.start + 4)


def _amounts(text: str, moments: list[Moment], answer_text: str, answer: Amount, question: str) -> Iterator[ReadValue]:
    every = find_numbers(text)
    named = [reading.value for number in read_question(question).numbers for reading in number.readings]
    numbers = [
        number
        for number in every
        if not _overlaps(number, moments)
        and not _is_other_form(number, answer)
        and not _is_beside_year(text, number, answer)
        and not any(reading.value in named for reading in number.readings)
        and not is_part(text, number.start, number.end, question)
    ]

    def may_be_answer(number: Number) -> bool:
        return compare(text[number.start : number.end], answer_text, question).verdict != "different"

    for number in _of_kind(numbers, answer, question, _Topic(text, every, question), may_be_answer):
        if value := _stated(text, number, answer_text, answer, question):
            yield value


def _of_kind(
    numbers: list[Number],
    answer: Amount,
    question: str,
    topic: _Topic,
    may_be_answer: Callable[[Number], bool],
) -> list[Number]:
    """Return those of the numbers that are in the answer's unit, or about what is asked."""
    unit = answer.number.unit
    kinds = {(u.kind, u.dimension) for u in ([unit] if unit else read_question(question).units)}
    if kinds:
        in_unit = [n for n in numbers if n.unit and (_kind(n) in kinds or (unit and in_one_unit(n, answer.number)))]
        # A bare number may be the answer where a header says its unit; another one is no value of the kind.
        return in_unit or [n for n in numbers if n.unit is None and (not unit or may_be_answer(n)) and topic.answers(n)]
    return _without_unit(numbers, answer, topic)


def _without_unit(numbers: list[Number], answer: Amount, topic: _Topic) -> list[Number]:
    if answer.number.scaled:  # 4.2 billion is no number of people
        return [n for n in numbers if n.scaled] or numbers
    return numbers if answer.number.form == "share" else [n for n in numbers if topic.answers(n)]


def _stated(text: str, number: Number, answer_text: str, answer: Amount, question: str) -> ReadValue | None:
    """Return the value that a number states, with its doubt; None for the size of a change."""
    # In a sentence a minus behind a word is read as a dash.
    start = number.start - (_MINUS.search(text[max(number.start - 2, 0) : number.start]) is not None)
    value = _read(text, start, number.end)
    reason = doubt(text, start, value.end, answer_text, question)
    if reason == CHANGE:
        return None
    if number.value > 0 and (answer.number.value < 0 or asks_change(question)) and is_fall(text, start, value.end):
        value, reason = replace(value, text=f"-{value.text}"), "" if reason == SIGN else reason
    approximate = _APPROXIMATE.search(text[max(start - 24, 0) : start]) is not None
    return replace(value, doubt=reason, is_rounded=approximate)


class _Topic:
    """The words of a question, and the sentences of a text by whether they are about them."""

    def __init__(self, text: str, numbers: Sequence[Number], question: str) -> None:
        self._text = text
        self._asked = {_stem(word) for word in words_of(read_question(question).folded)} - _EMPTY
        parts, end = [], 0
        for number in numbers:
            parts += [text[end : number.start], "0" * (number.end - number.start)]
            end = max(end, number.end)
        plain = "".join([*parts, text[end:]])
        self._ends = [match.end() for match in _SENTENCE_END.finditer(plain)] + [len(plain)]
        starts = [0, *self._ends[:-1]]
        self._is_about = [self._about(plain[first:last]) for first, last in zip(starts, self._ends, strict=True)]

    def _about(self, sentence: str) -> bool:
        words = {_stem(word) for word in words_of(fold(sentence)) if word.isalpha()}
        return words <= _EMPTY or not words.isdisjoint(self._asked | _PRONOUNS)

    def answers(self, number: Number) -> bool:
        """Return whether a plain number may answer the question: what it counts, and its sentence, are about what is asked.

        A sentence without any word of its own, such as "It was 12.", is about it.
        """
        if not self._asked:
            return True
        noun = _NOUN.match(self._text, number.end)
        if noun and noun[1].casefold() not in _UNITS_OF_COUNT:
            counted = {*map(_stem, words_of(fold(noun[1])))}
            if not counted <= self._asked | _EMPTY:
                return False
        return self._is_about[bisect_right(self._ends, number.start)]


def _stem(word: str) -> str:
    """Return the beginning of a word, which its forms share: employees, employed."""
    return word[:_STEM]


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
    return not looks_alike or BEFORE_YEAR.search(text[: number.start][-24:]) is not None
