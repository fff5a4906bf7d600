"""Comparison of two values: the same, different, or unclear without more context."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Literal

from benchmarks.values.clean_text import clean, fold
from benchmarks.values.moments import Moment, Parts, find_moments
from benchmarks.values.numerals import Number, Reading, find_numbers
from benchmarks.values.parse import LONGEST, Amount, Listing, Polarity, Span, Value, Words, parse
from benchmarks.values.question import Question, read_question
from benchmarks.values.units import PERCENT, Unit, convert_temperature, money_agrees
from benchmarks.values.words import OTHER_WITH, initials, same_letters

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

_MARKS = " .,;:!?\"'"
_SIGNS = re.compile(r"[<>=≤≥≠+*/^√|→∧∨¬&]")
_SENTENCE = re.compile(r"[.!?;:,]\s|\b(?:is|are|was|were|be|it|that|there|answer|has|have|than|to)\b")
_ASIDE = re.compile(r"\s*\(([^()]*)\)$")
_FORMULA = re.compile(r"^(?:[A-Z][a-z]{1,2}[A-Z][A-Za-z0-9]{0,3}|[A-Z]{1,3}[+-])$")
_CONSONANTS = re.compile("[b-df-hj-np-tv-xz]{2,5}")
_HAN_NUMBER = re.compile("[〇一二三四五六七八九十百千]+(?=[\u4e00-\u9fff])")
_ROMAN = re.compile(r"^(?:[^\W\d_]+\.? )?(?:[IVX]{2,6}|[IV])$")
_TELEPHONE = re.compile(r"\s*[0-9]+(?:[ -][0-9]+)+\s*|\s*[0-9]{9,}\s*")
_NOT_POLAR = "one is a yes or no, the other is not"
_HUNDREDTH = Fraction(1, 100)
_PERIODS = frozenset({"second", "minute", "hour", "day", "week", "month", "year"})
_POUND = Unit("measure", "pound", 0.45359237, "kilogram")


def compare(a: str, b: str, question: str = "", tolerance: float = 0.0) -> Comparison:
    """Return whether two short texts give the same value; it is symmetric, and never fails on any text.

    What the ``question`` settles is settled: the unit and the magnitude it asks in, its year, its options. Numbers within
    ``tolerance``, a share of the larger, are the same.
    """
    folded = [fold(clean(text)).strip(_MARKS) or clean(text) for text in (a, b)]
    if folded[0] == folded[1]:
        return SAME if _same_case(a, b) else _different("the units differ in case")
    if not any(map(str.isalnum, "".join(folded))):
        return _different("neither is a value")
    if (digits := _digits(a)) and digits == _digits(b):
        return SAME
    if max(len(a), len(b)) > LONGEST:
        return _different("long texts that differ")
    asked = read_question(question)
    first, second = (parse(_option(text, asked)) for text in sorted((a, b)))
    result = compare_values(first, second, asked, tolerance)
    if result.verdict == "unclear":
        options = {_printed(text, asked) for text in (a, b)}
        return _different("two options of the question") if len(options) == 2 and "" not in options else result
    if result.verdict == "same":
        return result
    sides = [{text, _ASIDE.sub("", text), *filter(None, _ASIDE.findall(text))} for text in folded]
    if not sides[0].isdisjoint(sides[1]):
        return MORE_WORDS
    for unclear, form in ((NUMERALS, _HAN_NUMBER), (NUMERALS, _ROMAN), (SHORT, _FORMULA)):
        if bool(form.search(a)) != bool(form.search(b)):
            return unclear
    return result


def _printed(text: str, asked: Question) -> str:
    """Return the letter of the option that a text is; "" if it is none."""
    own = fold(clean(_option(text, asked))).strip(_MARKS)
    return next((letter for letter, option in asked.options.items() if fold(clean(option)).strip(_MARKS) == own), "")


def _digits(text: str) -> str:
    """Return the digits of a number that is only a name, such as a telephone number; "" for other texts."""
    return text.replace(" ", "").replace("-", "") if _TELEPHONE.fullmatch(text) else ""


def _same_case(a: str, b: str) -> bool:
    """Return whether letters that mean another unit in another case are equal: 10 mW and 10 MW."""
    first, second = parse(a), parse(b)
    if clean(a) == clean(b) or not (isinstance(first, Amount) and isinstance(second, Amount)):
        return True
    return compare_values(first, second, read_question("")).verdict == "same"


def _option(text: str, asked: Question) -> str:
    letter = clean(text).strip(" ()[].:*\"'")
    return asked.options.get(letter.upper(), text) if len(letter) == 1 else text


def compare_values(a: Value, b: Value, asked: Question, tolerance: float = 0.0) -> Comparison:
    """Return whether two values that were read are the same."""
    match a, b:
        case Polarity(), Polarity():
            if a.truth != b.truth:
                return _different("one is yes, the other no")
            return MORE_WORDS if a.more or b.more else SAME
        case (Polarity(), _) | (_, Polarity()):
            return PARAPHRASE if asked.polar and {type(a), type(b)} == {Polarity, Words} else _different(_NOT_POLAR)
        case Amount(), Amount():
            return _amounts(a, b, asked, tolerance)
        case Moment(), Moment():
            return _moments(a, b, asked)
        case (Moment() as moment, Amount() as amount) | (Amount() as amount, Moment() as moment):
            return _moment_and_year(moment, amount, asked)
        case Span(), Span():
            pairs = ((a.low, b.low), (a.high, b.high))
            return _all([compare_values(x, y, asked, tolerance) for x, y in pairs])
        case (Span(), _) | (_, Span()):
            return _different("one is a range, the other is not")
        case Listing(), Listing():
            return _listings(a, b, asked, tolerance)
        case (Listing() as listing, other) | (other, Listing() as listing):
            return _listing_and_one(listing, other, asked, tolerance)
        case Words(), Words():
            return _words(a, b)
        case (Words() as words, (Amount() | Moment()) as value) | ((Amount() | Moment()) as value, Words() as words):
            if not _occurs(value, words.folded):
                return _different("one is a number, the other is not")
            return PART if _is_named_by(words, value) else MORE_WORDS
        case _:
            return _different("the values are of different kinds")


def _different(reason: str) -> Comparison:
    return Comparison("different", reason)


def _all(parts: Sequence[Comparison]) -> Comparison:
    """Return the verdict on wholes whose parts were compared: different if one is, unclear if one is."""
    return next((p for verdict in ("different", "unclear") for p in parts if p.verdict == verdict), SAME)


def _amounts(a: Amount, b: Amount, asked: Question, tolerance: float) -> Comparison:
    result = compare_numbers(a.number, b.number, asked, tolerance)
    year, short = (a.number, b.number) if a.number.form == "year" else (b.number, a.number)
    if year.form == "year" != short.form and short.value == year.value % 100 and not short.spelled:
        return LESS_EXACT  # '08
    if result.verdict == "different":
        return result
    if bool(a.bound) != bool(b.bound):
        return BOUND
    nouns = [set(x.noun) - asked.words for x in (a, b)]
    if result is SAME and nouns[0] != nouns[1]:
        return NOUN
    return result


def compare_numbers(a: Number, b: Number, asked: Question, tolerance: float = 0.0) -> Comparison:
    """Return whether two numbers with their units are the same, within ``tolerance``, a share of the larger."""
    if "ordinal" in (a.form, b.form) and a.form != b.form:
        return RANK if a.value == b.value else _different("the numbers differ")
    if a.form == b.form == "year":
        return SAME if a.value == b.value else _different("the years differ")
    if _is_count(a, b) or _is_count(b, a):
        return COUNT
    readings = in_one_unit(a, b)
    if readings is None:
        return _different("the units differ")
    result = _readings(*readings, tolerance)
    if a.unit and b.unit:
        if result is SAME and a.unit.dimension != b.unit.dimension and a.unit.kind == b.unit.kind == "measure":
            return PERIOD
        if result is SAME and a.unit.kind == "money" and money_agrees(a.unit.name, b.unit.name) is None:
            return CURRENCIES
    elif unit := a.unit or b.unit:
        if unit == PERCENT:
            return _percent_and_bare(result, *((a, b) if a.unit else (b, a)), asked, tolerance)
        if result is SAME and not _asks_in(unit, asked):
            return NO_UNIT
    if result.verdict == "different" and (a.scaled != b.scaled or asked.magnitude):
        larger = a.scaled or (not b.scaled and abs(a.value) > abs(b.value))
        return _scaled_and_plain(result, *((a, b) if larger else (b, a)), asked, tolerance)
    return result


def _is_count(share: Number, plain: Number) -> bool:
    return share.count is not None and plain.form != "share" and plain.unit is None and share.count == plain.value


def _percent_and_bare(
    result: Comparison, percent: Number, bare: Number, asked: Question, tolerance: float
) -> Comparison:
    """Return ``result`` for a number of percent and one without a unit, which may be a share of 1."""
    if bare.form == "share":
        return result
    if result is SAME:
        return result if _asks_in(PERCENT, asked) else NO_UNIT
    shares = _readings(_times(percent, _HUNDREDTH).readings, bare.readings, tolerance)
    return NO_UNIT if result.verdict == "different" != shares.verdict else result


def _scaled_and_plain(
    result: Comparison, scaled: Number, plain: Number, asked: Question, tolerance: float
) -> Comparison:
    """Return ``result`` unless the plain number, in thousands, millions or what the question asks in, is the scaled one."""
    if abs(plain.value) >= 10**6:
        return result
    for size in [asked.magnitude] if asked.magnitude else [Fraction(1000) ** n for n in (1, 2, 3, 4)]:
        readings = in_one_unit(_times(plain, size), scaled)
        if readings and _readings(readings[0], scaled.readings, tolerance) is SAME:
            return SAME if asked.magnitude else NO_MAGNITUDE
    return result


def _times(number: Number, factor: Fraction) -> Number:
    return replace(number, readings=tuple(Reading(r.value * factor, r.step * factor) for r in number.readings))


def _asks_in(unit: Unit, asked: Question) -> bool:
    return any(
        u.kind == unit.kind and (u.name == unit.name or (unit.kind == "money" and money_agrees(u.name, unit.name)))
        for u in asked.units
    )


def in_one_unit(a: Number, b: Number) -> tuple[Sequence[Reading], Sequence[Reading]] | None:
    """Return the readings of both in one unit; None where the units cannot be of one thing."""
    left, right = a.unit, b.unit
    if left is None or right is None:
        if left == PERCENT and b.form == "share":
            a = _times(a, _HUNDREDTH)
        elif right == PERCENT and a.form == "share":
            b = _times(b, _HUNDREDTH)
        return a.readings, b.readings
    if "pound" in (left.name, right.name) and {left.kind, right.kind} == {"money", "measure"}:
        left, right = (_POUND if u.name == "pound" else u for u in (left, right))
    if left.kind == right.kind == "measure" and _per_time(left, right):
        return a.readings, b.readings
    if (left.kind != right.kind and left.dimension != "dimensionless") or left.dimension != right.dimension:
        return None
    if left.kind == "money" and money_agrees(left.name, right.name) is False:
        return None
    if left.kind == "temperature":
        return a.readings, [Reading(convert_temperature(r.value, right.name, left.name), r.step) for r in b.readings]
    if left.kind == "measure" and left.name == right.name:
        return a.readings, b.readings
    return _times(a, Fraction(repr(left.size))).readings, _times(b, Fraction(repr(right.size))).readings


def _per_time(a: Unit, b: Unit) -> bool:
    """Return whether one unit is the other per day or the like."""
    shorter, longer = sorted((a.name, b.name), key=len)
    return longer.startswith(f"{shorter} / ") and longer.rpartition(" ")[2] in _PERIODS


def _readings(a: Sequence[Reading], b: Sequence[Reading], tolerance: float) -> Comparison:
    equal = [(x, y) for x, y in product(a, b) if _equal(x.value, y.value, tolerance)]
    if equal:
        return SAME if len(equal) == max(len(a), len(b)) else SEPARATOR
    rounded = any(_rounds(x, y) or _rounds(y, x) for x, y in product(a, b))
    return ROUNDED if rounded else _different("the numbers differ")


def _equal(a: Fraction, b: Fraction, tolerance: float) -> bool:
    if tolerance <= 0 and a.denominator == b.denominator == 1:
        return a == b
    return abs(a - b) <= max(abs(a), abs(b)) * Fraction(max(tolerance, 1e-12))


def _rounds(exact: Reading, rounded: Reading) -> bool:
    """Return whether one number is the other in fewer digits."""
    finer = exact.step < rounded.step
    return finer and abs(exact.value - rounded.value) < rounded.step / 2 and abs(rounded.value) >= rounded.step


def _moments(a: Moment, b: Moment, asked: Question) -> Comparison:
    if a.kind != b.kind:
        kinds, years = {a.kind, b.kind}, {_year(a), _year(b)}
        if "time" in kinds:
            return _different("one is a time of day")
        same_year = len(years - {None}) < 2 or "decade" in kinds
        return LESS_EXACT if same_year else _different("the years differ")
    results = [_parts(x, y, asked) for x, y in product(a.readings, b.readings)]
    if len(a.readings) == len(b.readings) == 1 or all(r.verdict == "different" for r in results):
        return results[0]
    if a.readings == b.readings and a.kind == "date":
        return SAME
    return AMBIGUOUS


def _parts(a: Parts, b: Parts, asked: Question) -> Comparison:
    if any(x is not None and y is not None and x != y for x, y in zip(a, b, strict=True)):
        return _different("the dates differ")
    if a == b:
        return SAME
    missing = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if (x is None) != (y is None)]
    known = a[0] if a[0] is not None else b[0]
    return SAME if missing == [0] and known in asked.years else LESS_EXACT


def _year(moment: Moment) -> int | None:
    return None if moment.kind == "decade" else moment.readings[0][0]


def _moment_and_year(moment: Moment, amount: Amount, asked: Question) -> Comparison:
    number = amount.number
    if moment.kind == "date" and number.form == "share":
        return AMBIGUOUS  # 06/24
    if moment.kind == "time" or number.form != "year" or amount.noun:
        return _different("one is a date or time, the other a number")
    year = int(number.value)
    if moment.kind == "decade":
        century, decade = moment.readings[0]
        inside = decade == year % 100 // 10 * 10 and century in (None, year // 100)
        return LESS_EXACT if inside else _different("the years differ")
    own = _year(moment)
    return LESS_EXACT if own in (None, year) else _different("the years differ")


def _listings(a: Listing, b: Listing, asked: Question, tolerance: float) -> Comparison:
    if asked.ordered and len(a.parts) == len(b.parts):
        return _all([compare_values(x, y, asked, tolerance) for x, y in zip(a.parts, b.parts, strict=True)])
    left, missing, unclear = list(b.parts), False, False
    for part in a.parts:
        verdicts: list[str] = [compare_values(part, other, asked, tolerance).verdict for other in left]
        verdict = next((v for v in ("same", "unclear") if v in verdicts), "different")
        unclear = unclear or verdict == "unclear"
        if verdict == "different":
            missing = True
        else:
            left.pop(verdicts.index(verdict))
    if missing and left:
        return _different("the lists differ")
    return INCOMPLETE if missing or left else MORE_WORDS if unclear else SAME


def _listing_and_one(listing: Listing, other: Value, asked: Question, tolerance: float) -> Comparison:
    if isinstance(other, Words):
        words = [w for part in listing.parts for w in (part.words if isinstance(part, Words) else ("",))]
        if len(listing.parts) == 2 and sorted(words) == sorted(other.words):
            return SAME if len(words) > 1 else MORE_WORDS  # Smith, Jane
    if any(compare_values(part, other, asked, tolerance).verdict != "different" for part in listing.parts):
        return INCOMPLETE
    return _different("one is a list without the other")


def _words(a: Words, b: Words) -> Comparison:
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
            return _different(f"{min(other)!r} makes another value")
        return PART if len(longer.words) < 4 else MORE_WORDS
    if len(a.words) == len(b.words) and (in_pairs := _word_by_word(a, b)):
        return in_pairs
    sentence = max(len(a.words), len(b.words)) > 5
    if sentence and len(first & second) * 2 >= min(len(first), len(second)):
        return PARAPHRASE
    return _different("the words differ")


def _signs_and_order(a: Words, b: Words) -> Comparison | None:
    """Return what the signs, the order of the words and the countries tell; None if nothing."""
    signs = [_SIGNS.findall(x.folded) for x in (a, b)]
    if signs[0] != signs[1] and (a.words == b.words or all(signs)):
        return _different("the signs differ")
    if a.words == b.words or "".join(a.words) == "".join(b.words):
        return SAME
    if any(signs) and sorted(a.words) == sorted(b.words):
        return _different("the order differs")
    if a.country and b.country:
        return SAME if a.country == b.country else _different("two countries")
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


def _is_named_by(words: Words, value: Amount | Moment) -> bool:
    """Return whether a text is a name with this number and no other, such as "Platform 4"."""
    others = [word for word in words.words if word.isalpha()]
    is_name = len(words.words) - len(others) == 1 and 0 < len(others) < 3 and not _SENTENCE.search(words.folded)
    is_it = isinstance(value, Amount) and any(n.value == value.number.value for n in find_numbers(words.folded))
    return is_name and is_it and not OTHER_WITH.intersection(others)


def _occurs(value: Amount | Moment, folded: str) -> bool:
    """Return whether a number or a date occurs within words."""
    asked = read_question("")
    if isinstance(value, Amount):
        return any(compare_numbers(n, value.number, asked).verdict != "different" for n in find_numbers(folded))
    return any(_moments(m, value, asked).verdict != "different" for m in find_moments(folded))
