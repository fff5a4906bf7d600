"""Plausible wrong values: the kind of an answer, and other values of its kind, magnitude, precision and unit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from benchmarks.build import Difficulty
from benchmarks.cmc_bench.construction.cmc_passages import states
from benchmarks.cmc_bench.construction.near_numbers import is_near, near_numbers
from benchmarks.cmc_bench.construction.text_kinds import TextKind, in_case, named_alternatives, text_kind
from benchmarks.cmc_bench.construction.written_number import WrittenNumber, read_number
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.hash_collections import hash64
from benchmarks.text.normal_form import coarse_type, normalise
from benchmarks.values import compare
from benchmarks.values.dates_and_times import Moment
from benchmarks.values.numerals import WORDS
from benchmarks.values.parse_value import Listing, Polarity, Span, parse
from benchmarks.values.question_facts import Question, read_question
from benchmarks.values.units import PERCENT

TOLERANCE = 0.05
"""The share within which a reader of a chart's number is right (Masry et al. 2022); wrong values lie outside it."""

_LATEST_YEAR = 2025
"""The latest year that no question about the past excludes."""
YEARS: dict[Difficulty, tuple[int, int]] = {"near": (1, 5), "far": (6, 20)}
_NEAR_DATES = 3.0
_OLD_YEAR = re.compile(r"1\d{3}")
_ASKS_YEAR = re.compile(r"\b(?:years?|when|date|jahr(?:e|en)?|wann|année|quand|año|cuándo|anno|ano)\b", re.IGNORECASE)
_ASKS_AMOUNT = re.compile(
    r"\bhow (?:many|much)\b|\b(?:number|amount|total|sum|value|average|difference|price) of\b", re.IGNORECASE
)
_COMPUTED = re.compile(
    r"\b(?:total\w*|sum|add\w*|average|mean|median|difference|differ|ratio|subtract\w*|minus|divid\w*|multipl\w*|altogether"
    r"|combined|gap|times|together|summe|durchschnitt\w*|mittelwert|unterschied|differenz|verhältnis|zusammen|insgesamt)\b",
    re.IGNORECASE,
)
"""A question about a value computed from several, whose fraction shows how: a mean of two may end in .5, of three in .33."""
EXTREME = re.compile(
    r"\b(?:mode|range|max\w*|min\w*|top|peak|most|least|mehr|\w+est|höchst\w*|niedrigst\w*|größt\w*|kleinst\w*)\b"
    r"|\bhow many\b|\bwie viele\b",
    re.IGNORECASE,
)
"""A question about the first or last of several values in size, or a count: another value of the picture does not fit it."""
_MEAN_FRACTION = re.compile(r"50*|[27]50*|33+|66*7")
"""The fraction of a mean of two, three or four whole numbers; a small number keeps no other, since few are near it then."""
_EQUAL_PARTS = re.compile(r"\b(two|three|four|five|[2-5]) (?:equal|identical|same)\b", re.IGNORECASE)
"""A sum of equal parts is divisible by their number."""
_RESTATED = re.compile(r"\d[^\d,;]*[/=|(][^\d,;]*\d", re.IGNORECASE)
"""An answer with a number and another beside it."""
_COMPOUND = "compound"
_OF_TOTAL = re.compile(r"\b(?:out of|of (?:the|all|these)|von (?:den|allen)) (\d{1,6})\b(?! ?%)", re.IGNORECASE)
_SCALE = re.compile(
    r"\b(?:from|of|scale|von) (?:0|1) ?(?:-|–|to|bis) ?(\d{1,3})\b|\b(\d{1,2})-point scale", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]{3,}")
_NUMERAL = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class ValueKind:
    """The kind of a row's answer.

    Two answers with the same ``key`` are of one kind, unit and precision; ``place`` orders them (log of a number, year of a
    date; NaN for words). ``low`` and ``high`` bound what the question admits, ``high`` is 0 for no bound; a wrong number differs
    by multiples of ``step`` last places, if that is not 0. ``is_specific`` is False where rows about another picture, document
    or group may hold something else under the same key. ``summary`` is true of a question about several values of its picture.
    """

    key: tuple[str, ...]
    place: float = math.nan
    number: WrittenNumber | None = None
    words: TextKind | None = None
    low: float = 0
    high: float = 0
    step: int = 0
    is_specific: bool = True
    summary: bool = False

    @property
    def is_year(self) -> bool:
        return self.key[0] == "year"

    @property
    def is_compound(self) -> bool:
        """True of an answer that states a value twice, as 2.72 / 2720 does: a wrong one would have to change both."""
        return self.key[0] == _COMPOUND


def value_kind(row: SourceRow) -> ValueKind:
    """Return the kind of a row's answer to its question."""
    answer, question = row.answer, read_question(row.question)
    number, value = read_number(answer), parse(answer)
    if year := _year_kind(row, question, number):
        return year
    if number and number.units:
        is_restated = number.most * 10**number.decimals / number.units in (1e3, 1e6)
    else:
        is_restated = not isinstance(value, Listing | Moment | Span) and _RESTATED.search(answer) is not None
    if is_restated:
        return ValueKind((_COMPOUND, _NUMERAL.sub("9", answer)), is_specific=False)
    if number:
        return _number_kind(number, row.question, question)
    if isinstance(value, Listing) or answer.strip().startswith("["):
        return ValueKind(("list", *sorted(normalise(answer).split())), is_specific=False)
    if isinstance(value, Moment | Span) and any(map(str.isdigit, answer)):
        mask = _NUMERAL.sub(lambda m: "9" * len(m[0]), _WORD.sub("M", answer) if isinstance(value, Moment) else answer)
        return ValueKind((type(value).__name__, mask), _date_place(value))
    words = text_kind(answer, row.question)
    is_long = len(answer.split()) > 6
    return ValueKind(("words", words.name), words=words, is_specific=words.is_specific and not is_long)


def _year_kind(row: SourceRow, question: Question, number: WrittenNumber | None) -> ValueKind | None:
    """Return the kind of an answer that is a year; None for any other."""
    asks_year = _ASKS_YEAR.search(row.question) is not None
    may_be_year = asks_year or (not _ASKS_AMOUNT.search(row.question) and not question.units)
    if (may_be_year and coarse_type(row.answer) == "year") or (asks_year and _OLD_YEAR.fullmatch(row.answer.strip())):
        year = int(normalise(row.answer))
        years = sorted(question.years)
        inside = len(years) > 1 and years[0] <= year <= years[-1]
        latest = years[-1] if inside else max(_LATEST_YEAR, year)
        return ValueKind(("year",), float(year), low=years[0] if inside else 0, high=latest)
    if number and 1900 <= number.units <= 2100 and number.before[:1].isalpha() and not number.decimals:  # FY 2019
        latest = max(_LATEST_YEAR, number.units)
        return ValueKind(("year", number.before, number.after), float(number.units), high=latest)
    return None


def _number_kind(number: WrittenNumber, text: str, question: Question) -> ValueKind:
    computed = _COMPUTED.search(text) is not None
    high = _highest(number, text, question)
    lowest = 1 if number.ordinal or number.words[:1] == ("",) or _SCALE.search(text) else 0
    step = _form_step(number, text) if computed else 0
    form = (number.decimals, number.zeros, high, computed, step, step and number.units % step)
    key = ("number", *number.surroundings, number.mark, *map(str, form), number.group)
    place = math.log(number.value) if number.units else -math.inf
    summary = computed or EXTREME.search(text) is not None
    return ValueKind(key, place, number, low=lowest, high=high, step=step, summary=summary)


def _form_step(number: WrittenNumber, question: str) -> int:
    """Return the step that keeps the fraction of a computed number, or the divisor of a sum of equal parts; 0 for none."""
    if number.decimals:
        whole, fraction = divmod(number.units, 10**number.decimals)
        keeps = fraction and (whole > 2 or (whole and _MEAN_FRACTION.fullmatch(f"{fraction:0{number.decimals}d}")))
        return 10**number.decimals if keeps else 0
    parts = _EQUAL_PARTS.search(question)
    count = WORDS.get(parts[1].casefold()) or int(parts[1]) if parts else 0
    return math.lcm(count, 10**number.zeros) if count and number.units and number.units % count == 0 else 0


def _least_step(kind: ValueKind) -> float:
    """Return the smallest difference of two numbers of a kind."""
    assert kind.number is not None
    return float((kind.step or 10**kind.number.zeros) / 10**kind.number.decimals)


def may_contradict(kind: ValueKind, other: ValueKind, difficulty: Difficulty) -> bool:
    """Return whether two values of one kind are as far apart as ``difficulty`` asks."""
    if kind.number and other.number:
        return is_near(kind.number.value, other.number.value, difficulty, step=_least_step(kind))
    if kind.is_year:
        least, most = YEARS[difficulty]
        return least <= abs(kind.place - other.place) <= most
    if not math.isnan(kind.place) and not math.isnan(other.place):
        return 0 < abs(kind.place - other.place) <= _NEAR_DATES
    return True


def fits(row: SourceRow, kind: ValueKind, value: str, *, lent: ValueKind | None = None) -> bool:
    """Return whether ``value`` is a plausible wrong answer to a row's question.

    It differs from the answer and from the other options beyond doubt, is none that the question names or excludes, and the
    passage does not state it.
    """
    tolerance = TOLERANCE if kind.number else 0.0
    if compare(value, row.answer, row.question, tolerance).verdict != "different":
        return False
    if lent is not None:
        amount = lent.number.value if lent.number else lent.place
        if kind.high and not kind.low <= amount <= kind.high:
            return False
    if kind.number or kind.is_year:
        own = read_number(value)
        named = {number.value for number in read_question(row.question).numbers} - {kind.low, kind.high}
        if own and Fraction(own.units, 10**own.decimals) in named:
            return False
    elif _is_named(value, row.question) and not (isinstance(parse(value), Polarity) or value in alternatives(row)):
        return False
    if any(compare(value, option, row.question).verdict == "same" for option in row.options):
        return False
    return not (row.passage and states(row.passage, value, row.question, ("same", "unclear")))


def _is_named(value: str, question: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", question, re.IGNORECASE) is not None


def in_style(kind: ValueKind, value: str, like: str) -> str:
    """Return a value of a kind in words with capital or small letters as ``like`` has them, any other as it is."""
    return in_case(value, like) if kind.words else value


def alternatives(row: SourceRow) -> list[str]:
    """Return what the question itself offers beside an answer in words."""
    if coarse_type(row.answer) == "year" or read_number(row.answer):
        return []
    return list(dict.fromkeys(named_alternatives(row.answer, row.question)))


def made_values(row: SourceRow, kind: ValueKind, difficulty: Difficulty, purpose: str) -> Iterator[str]:
    """Yield values made from a row's answer, of its kind; ``purpose`` seeds their order. There may be none."""
    if kind.number:
        drawn = near_numbers(kind.number, difficulty, purpose, lowest=int(kind.low), most=kind.high, step=kind.step)
        for units in drawn:
            value, step = replace(kind.number, units=units).value, _least_step(kind)
            if (not kind.high or value <= kind.high) and is_near(kind.number.value, value, difficulty, step=step):
                text = kind.number.written(units)
                if text:
                    yield text
    elif kind.is_year:
        least, most = YEARS[difficulty]
        years = [int(kind.place) + sign * step for step in range(least, most + 1) for sign in (1, -1)]
        for year in _shuffled([str(y) for y in years if kind.low <= y <= kind.high], purpose):
            yield row.answer.replace(str(int(kind.place)), year)
    elif kind.is_compound:
        return
    elif kind.key[0] == "list":
        yield from _other_lists(row, difficulty, purpose)
    elif kind.words is None:
        yield from _shuffled(list(dict.fromkeys(_other_dates(row.answer))), purpose)
    else:
        yield from _shuffled(kind.words.others(row.answer), purpose)


def _shuffled(items: Sequence[str], purpose: str) -> list[str]:
    return sorted(items, key=lambda item: hash64(f"{purpose}|{item}"))


def _highest(number: WrittenNumber, question: str, asked: Question) -> float:
    """Return the largest number that a question admits as its answer, as far as it says; 0 if it does not."""
    if number.most:
        return number.most
    totals = [float(m[1] or m[2]) for m in _SCALE.finditer(question)] + [
        float(m[1]) for m in _OF_TOTAL.finditer(question)
    ]
    totals += [100.0] if number.after.startswith("+") else []  # 65+
    totals = [total for total in totals if total >= number.value]
    if totals:
        return min(totals)
    is_percent = "%" in number.after or "percent" in number.after.casefold() or PERCENT in asked.units
    return 100 if is_percent and number.value <= 100 and not number.before.strip() else 0


def _date_place(value: Moment | Span) -> float:
    if not isinstance(value, Moment) or value.kind != "date":
        return math.nan
    year, month, day = value.readings[0]
    return (year or 0) + ((month or 1) - 1) / 12 + ((day or 1) - 1) / 372


def _other_dates(answer: str) -> Iterator[str]:
    """Yield dates, times and ranges that are written as ``answer`` is: another month, another numeral, a range beside it."""
    value = parse(answer)
    if isinstance(value, Span):
        yield from _other_ranges(answer)
        return
    for word in _WORD.finditer(answer):
        months = text_kind(word[0], "Which month?")
        if months.name == "month":
            yield from (answer[: word.start()] + month + answer[word.end() :] for month in months.others(word[0]))
    for numeral in _NUMERAL.finditer(answer):
        is_minutes = isinstance(value, Moment) and value.kind == "time" and numeral.start() > 0
        step = 10 if isinstance(value, Moment) and value.kind == "decade" else 1
        step = 5 if is_minutes and int(numeral[0]) % 5 == 0 else step
        for change in (-3, -2, -1, 1, 2, 3):
            changed = int(numeral[0]) + change * step
            text = f"{answer[: numeral.start()]}{changed:0{len(numeral[0])}d}{answer[numeral.end() :]}"
            other = parse(text)
            in_past = len(numeral[0]) < 4 or changed <= max(_LATEST_YEAR, int(numeral[0]))
            if (
                changed >= 0
                and in_past
                and isinstance(other, Moment)
                and isinstance(value, Moment)
                and other.kind == value.kind
            ):
                yield text


def _other_ranges(answer: str) -> Iterator[str]:
    """Yield the ranges before and after one of two whole numbers, as wide as it is: 35 to 44 beside 25 to 34."""
    ends = list(_NUMERAL.finditer(answer))
    if len(ends) != 2:
        return
    low, high = (int(end[0]) for end in ends)
    is_season = len(ends[0][0]) == 4 and len(ends[1][0]) == 2
    width = (high - low) % 100 if is_season else high - low
    is_years = low >= 1900
    step = 1 if is_years else width if low % 5 == high % 5 == 0 else width + 1
    for steps in (-3, -2, -1, 1, 2, 3) if is_years else (-1, 1):
        first = low + steps * step
        last = (first + width) % 100 if is_season else first + width
        if first >= 0 and width > 0 and (not is_years or first + width <= max(_LATEST_YEAR, low + width)):
            between = answer[ends[0].end() : ends[1].start()]
            yield f"{answer[: ends[0].start()]}{first}{between}{last:0{len(ends[1][0])}d}{answer[ends[1].end() :]}"


def _other_lists(row: SourceRow, difficulty: Difficulty, purpose: str) -> Iterator[str]:
    """Yield lists with one member changed to another of its kind, or consecutive years moved."""
    value = parse(row.answer.strip().strip("[]"))
    if not isinstance(value, Listing):
        return
    texts = value.texts
    if all(text.isdigit() for text in texts) and len(texts) == 2 and int(texts[1]) - int(texts[0]) == 1:
        yield from _shuffled(list(_other_ranges(row.answer)), purpose)
    for text in _shuffled(texts, purpose):
        member = replace(row, answer=text, options=(), passage="")
        kind = value_kind(member)
        if kind.key[0] == "list" or row.answer.count(text) != 1:
            continue
        for other in made_values(member, kind, difficulty, f"{purpose}|{text}"):
            if fits(member, kind, other) and all(compare(other, t, row.question).verdict == "different" for t in texts):
                yield row.answer.replace(text, other)
