"""Comparison of two values: the same, different, or unclear without more context."""

from __future__ import annotations

import re
from itertools import product

from benchmarks.values.clean_text import clean, fold
from benchmarks.values.comparison_verdicts import (
    AMBIGUOUS,
    BOUND,
    INCOMPLETE,
    LESS_EXACT,
    MORE_WORDS,
    NOUN,
    NUMERALS,
    PARAPHRASE,
    PART,
    SAME,
    SHORT,
    Comparison,
    different,
    of_parts,
)
from benchmarks.values.dates_and_times import Moment, Parts, find_moments
from benchmarks.values.name_words import OTHER_WITH
from benchmarks.values.number_comparison import compare_numbers
from benchmarks.values.numerals import find_numbers
from benchmarks.values.parse_value import LONGEST, Amount, Listing, Polarity, Span, Value, Words, parse
from benchmarks.values.question_facts import Question, read_question
from benchmarks.values.word_comparison import compare_words

_MARKS = " .,;:!?\"'"
_SENTENCE = re.compile(r"[.!?;:,]\s|\b(?:is|are|was|were|be|it|that|there|answer|has|have|than|to)\b")
_ASIDE = re.compile(r"\s*\(([^()]*)\)$")
_FORMULA = re.compile(r"^(?:[A-Z][a-z]{1,2}[A-Z][A-Za-z0-9]{0,3}|[A-Z]{1,3}[+-])$")
_HAN_NUMBER = re.compile("[〇一二三四五六七八九十百千]+(?=[\u4e00-\u9fff])")
_ROMAN = re.compile(r"^(?:[^\W\d_]+\.? )?(?:[IVX]{2,6}|[IV])$")
_TELEPHONE = re.compile(r"\s*[0-9]+(?:[ -][0-9]+)+\s*|\s*[0-9]{9,}\s*")
_NOT_POLAR = "one is a yes or no, the other is not"


def compare(a: str, b: str, question: str = "", tolerance: float = 0.0) -> Comparison:
    """Return whether two short texts give the same value; it is symmetric, and never fails on any text.

    What the ``question`` settles is settled: the unit and the magnitude it asks in, its year, its options. Numbers within
    ``tolerance``, a share of the larger, are the same.
    """
    folded = [fold(clean(text)).strip(_MARKS) or clean(text) for text in (a, b)]
    if folded[0] == folded[1]:
        return SAME if _same_case(a, b) else different("the units differ in case")
    if not any(map(str.isalnum, "".join(folded))):
        return different("neither is a value")
    if (digits := _digits(a)) and digits == _digits(b):
        return SAME
    if max(len(a), len(b)) > LONGEST:
        return different("long texts that differ")
    asked = read_question(question)
    first, second = (parse(_option(text, asked)) for text in sorted((a, b)))
    result = compare_values(first, second, asked, tolerance)
    if result.verdict == "unclear":
        options = {_printed(text, asked) for text in (a, b)}
        return different("two options of the question") if len(options) == 2 and "" not in options else result
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
                return different("one is yes, the other no")
            return MORE_WORDS if a.more or b.more else SAME
        case (Polarity(), _) | (_, Polarity()):
            return PARAPHRASE if asked.polar and {type(a), type(b)} == {Polarity, Words} else different(_NOT_POLAR)
        case Amount(), Amount():
            return _amounts(a, b, asked, tolerance)
        case Moment(), Moment():
            return _moments(a, b, asked)
        case (Moment() as moment, Amount() as amount) | (Amount() as amount, Moment() as moment):
            return _moment_and_year(moment, amount, asked)
        case Span(), Span():
            pairs = ((a.low, b.low), (a.high, b.high))
            return of_parts([compare_values(x, y, asked, tolerance) for x, y in pairs])
        case (Span(), _) | (_, Span()):
            return different("one is a range, the other is not")
        case Listing(), Listing():
            return _listings(a, b, asked, tolerance)
        case (Listing() as listing, other) | (other, Listing() as listing):
            return _listing_and_one(listing, other, asked, tolerance)
        case Words(), Words():
            return compare_words(a, b)
        case (Words() as words, (Amount() | Moment()) as value) | ((Amount() | Moment()) as value, Words() as words):
            if not _occurs(value, words.folded):
                return different("one is a number, the other is not")
            return PART if _is_named_by(words, value) else MORE_WORDS
        case _:
            return different("the values are of different kinds")


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


def _moments(a: Moment, b: Moment, asked: Question) -> Comparison:
    if a.kind != b.kind:
        kinds, years = {a.kind, b.kind}, {_year(a), _year(b)}
        if "time" in kinds:
            return different("one is a time of day")
        same_year = len(years - {None}) < 2 or "decade" in kinds
        return LESS_EXACT if same_year else different("the years differ")
    results = [_parts(x, y, asked) for x, y in product(a.readings, b.readings)]
    if len(a.readings) == len(b.readings) == 1 or all(r.verdict == "different" for r in results):
        return results[0]
    if a.readings == b.readings and a.kind == "date":
        return SAME
    return AMBIGUOUS


def _parts(a: Parts, b: Parts, asked: Question) -> Comparison:
    if any(x is not None and y is not None and x != y for x, y in zip(a, b, strict=True)):
        return different("the dates differ")
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
        return different("one is a date or time, the other a number")
    year = int(number.value)
    if moment.kind == "decade":
        century, decade = moment.readings[0]
        inside = decade == year % 100 // 10 * 10 and century in (None, year // 100)
        return LESS_EXACT if inside else different("the years differ")
    own = _year(moment)
    return LESS_EXACT if own in (None, year) else different("the years differ")


def _listings(a: Listing, b: Listing, asked: Question, tolerance: float) -> Comparison:
    if asked.ordered and len(a.parts) == len(b.parts):
        return of_parts([compare_values(x, y, asked, tolerance) for x, y in zip(a.parts, b.parts, strict=True)])
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
        return different("the lists differ")
    return INCOMPLETE if missing or left else MORE_WORDS if unclear else SAME


def _listing_and_one(listing: Listing, other: Value, asked: Question, tolerance: float) -> Comparison:
    if isinstance(other, Words):
        words = [w for part in listing.parts for w in (part.words if isinstance(part, Words) else ("",))]
        if len(listing.parts) == 2 and sorted(words) == sorted(other.words):
            return SAME if len(words) > 1 else MORE_WORDS  # Smith, Jane
    if any(compare_values(part, other, asked, tolerance).verdict != "different" for part in listing.parts):
        return INCOMPLETE
    return different("one is a list without the other")


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
