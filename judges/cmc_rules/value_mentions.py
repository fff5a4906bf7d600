"""Where a clause states a reference's value, or another value of its kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from benchmarks.values.clean_text import clean, fold
from benchmarks.values.dates_and_times import Moment, find_moments
from benchmarks.values.name_words import ARTICLES, OTHER_NAMES, OTHER_WITH, canonical, territories, word_set, words_of
from benchmarks.values.number_comparison import compare_numbers, in_one_unit
from benchmarks.values.numerals import Number, find_numbers
from benchmarks.values.parse_value import Amount, Listing, Span, Words, parse
from benchmarks.values.question_facts import read_question
from judges.cmc_rules.reference_values import OTHER, UNCLEAR, Reference, References, closest

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[%&+#]")
_LABELLED = re.compile(
    r"\b(?:step|fig|figure|group|week|grade|level|line|option|trial|phase|row|column|table|no|question|page|type|stage|part"
    r"|section|chapter|room|route|item|bar|number|class|model|test|age|top|day|source|image|passage|document|panel|scene"
    r")\s*[#(]?$",
    re.IGNORECASE,
)
"""Before a number, these make it the name of something."""
_CLOCK = re.compile(r"(?<![\w.,])([01]?[0-9]|2[0-3])\.([0-5][0-9])(?![\w%]|[.,][0-9])")
_RANGE = re.compile(r"\s*(?:-|to)\s*")
_EACH = re.compile(r"\b(?:per|every|each) $")
_RATE = re.compile(r"\s*(?:per|/|an?|each|every) ", re.IGNORECASE)
_APPROXIMATE = re.compile(
    r"(?:about|around|approximately|approx|roughly|nearly|almost|close to|some|circa|ca|just (?:over|under)|estimated|slightly"
    r"|more or less|over|[~≈]|etwa|ungefähr|environ|约)\W*(?:\w+ )?\W*$",
    re.IGNORECASE,
)
_WORD_BEFORE = re.compile(r"([^\W_]+)[ -]$")
_EXTENDING = OTHER_WITH - word_set("not no more less most only rather nearly almost second last first under over")


@dataclass(frozen=True, slots=True)
class Mention:
    """A value from ``start`` to ``end`` of a clause's text; ``name`` is the source whose value it is, or OTHER."""

    start: int
    end: int
    name: str
    exact: bool = True


def find_mentions(text: str, references: References) -> list[Mention]:
    """Return the mentions of references in a cleaned text, and other values of their kinds, in order and without overlap."""
    mentions = sorted(_mentions(text, references), key=lambda m: (m.start - m.end, m.name == OTHER, not m.exact))
    taken = bytearray(max((m.end for m in mentions), default=0))
    chosen = []
    for m in mentions:
        if not any(taken[m.start : m.end]):
            taken[m.start : m.end] = b"x" * (m.end - m.start)
            chosen.append(m)
    return sorted((m for m in chosen if m.name), key=lambda m: m.start)


def _mentions(text: str, references: References) -> Iterator[Mention]:
    folded = fold(text)
    moment_kinds = {r.value.kind for r in references.every if isinstance(r.value, Moment)}
    if "time" in moment_kinds:
        folded = _CLOCK.sub(r"\1:\2", folded)
    moments = find_moments(folded) if len(folded) == len(text) and references.kinds & {Moment, Span} else []
    for moment in moments if moment_kinds else ():
        name, exact = references.classify_value(moment)
        if name != OTHER or moment.kind in moment_kinds:
            yield Mention(moment.start, moment.end, name, exact)
    if references.kinds & {Amount, Span, Listing}:
        numbers = find_numbers(text)
        for number, following in zip(numbers, [*numbers[1:], None], strict=False):
            if not any(m.start <= number.start < m.end for m in moments):
                yield from _number(text, number, following, references)
    for reference in references.every:
        if isinstance(reference.value, Listing):
            yield from _listing(text, folded, reference.value, reference.name)
        elif isinstance(reference.value, Words):
            yield from _words(text, folded, reference, references)
    yield from _countries(folded, references)


def _number(text: str, number: Number, following: Number | None, references: References) -> Iterator[Mention]:
    if following:
        yield from _range(text, number, following, references)
    if not references.numbers:
        return
    question = references.question
    name, exact = closest({r: compare_numbers(number, own, question) for r, own in references.numbers.items()})
    if name == OTHER:
        if not _competes(text, number, references):
            return
        if _is_near(text, number, references):
            name, exact = UNCLEAR, False
    if number.form == "ordinal" and all(own.form != "ordinal" for own in references.numbers.values()):
        return
    is_asked = any(n.value == number.value and n.unit == number.unit for n in question.numbers)
    if not (is_asked and not exact and name not in ("", UNCLEAR)):
        yield Mention(number.start, number.end, name or UNCLEAR, exact)


def _range(text: str, number: Number, following: Number, references: References) -> Iterator[Mention]:
    """Yield the range that two numbers may be."""
    whole = text[number.start : following.end]
    if Span in references.kinds and isinstance(parse(whole), Span):
        yield Mention(number.start, following.end, *references.classify(whole))
    if references.numbers and number.form != "year" and _RANGE.fullmatch(text[number.end : following.start]):
        yield Mention(number.start, following.end, UNCLEAR, False)


def _competes(text: str, number: Number, references: References) -> bool:
    """Return whether a number of no reference is of their kind, and so may be another answer."""
    before = text[max(0, number.start - 20) : number.start]
    is_word = number.spelled and number.form == "" and number.value <= 2
    if is_word or _EACH.search(before) or _LABELLED.search(before):
        return False
    if any(n.value == number.value for n in references.question.numbers):
        return False
    return any(
        (own.form == "year") == (number.form == "year")
        and (own.unit is None or number.unit is None or own.unit.kind == number.unit.kind)
        for own in references.numbers.values()
    )


def _is_near(text: str, number: Number, references: References) -> bool:
    """Return whether a number may be a reference's in fewer digits, in thousands, in another unit or for another period."""
    if _RATE.match(text[number.end : number.end + 12]):
        return True
    approximate = _APPROXIMATE.search(text[max(0, number.start - 24) : number.start]) is not None
    for reference, own in references.numbers.items():
        if own.form == number.form == "year":
            continue
        if own.form == "share" and "/" in reference.text:
            return True
        readings = in_one_unit(number, own)
        if readings is None or not readings[0][0].value or not readings[1][0].value:
            continue
        a, b = readings[0][0], readings[1][0]
        coarse = a.step > b.step or not a.step or (own.unit and number.unit and own.unit != number.unit)
        limit = 0.1 if approximate else 0.05 if coarse else 0.01
        ratio = abs(a.value / b.value)
        if any(abs(ratio * Fraction(1000) ** power - 1) <= limit for power in range(-3, 4)):
            return True
    return False


def _listing(text: str, folded: str, listing: Listing, name: str) -> Iterator[Mention]:
    spans = [_part(text, folded, part) for part in zip(listing.parts, listing.texts, strict=True)]
    firsts = [span for span in spans if span]
    if len(firsts) == len(spans):
        yield Mention(min(start for start, _ in firsts), max(end for _, end in firsts), name)


def _part(text: str, folded: str, part: tuple[object, str]) -> tuple[int, int] | None:
    """Return where a part of a list, with its text, stands first."""
    value, written = part
    if not isinstance(value, Amount):
        return next(_runs(folded, _spelling(written)), None)
    numbers = (n for n in find_numbers(text) if compare_numbers(n, value.number, read_question("")).verdict == "same")
    return next(((n.start, n.end) for n in numbers), None)


def _words(text: str, folded: str, reference: Reference, references: References) -> Iterator[Mention]:
    """Yield where a name stands in the text, unless a word before it makes it another value ("New Mexico", "dark blue")."""
    spans = list(_runs(folded, _spelling(reference.text)))
    own = reference.value.words if isinstance(reference.value, Words) else ()
    for start, end in spans:
        if end - start == 1 and not text[start:end].isupper():
            continue  # "a" is no grade
        before = _WORD_BEFORE.search(folded[:start])
        if not before or before[1] not in _EXTENDING or before[1] in own:
            yield Mention(start, end, reference.name)


@lru_cache(maxsize=1024)
def _spelling(written: str) -> tuple[str, ...]:
    value = parse(written)
    return value.words if isinstance(value, Words) else tuple(canonical(w) for w in _WORD.findall(fold(clean(written))))


def _runs(folded: str, spelling: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the words of ``spelling`` one after the other, articles and spelling aside."""
    tokens, wanted = _tokens(folded), [w for word in spelling for w in word.split()]
    for i, (first, start, _) in enumerate(tokens):
        if not wanted or first != wanted[0]:
            continue
        matched = 0
        for word, _, end in tokens[i:]:
            if word == wanted[matched]:
                matched += 1
                if matched == len(wanted):
                    yield start, end
                    break
            elif word not in ARTICLES:
                break
    joined = "".join(wanted)
    if not folded.isascii() and not joined.isascii():  # Chinese and Japanese write without spaces
        yield from (match.span() for match in re.finditer(re.escape(joined), folded))


@lru_cache(maxsize=2048)
def _tokens(folded: str) -> tuple[tuple[str, int, int], ...]:
    return tuple(
        (word, *match.span())
        for match in _WORD.finditer(folded)
        for word in words_of(OTHER_NAMES.get(match[0], match[0]))
    )


def _countries(folded: str, references: References) -> Iterator[Mention]:
    """Yield where a country stands under another name of it."""
    codes = {r.name: r.value.country for r in references.every if isinstance(r.value, Words)}
    for name, code in codes.items():
        for other, of in territories().items() if code else ():
            if of == code and len(other) > 1 and other in folded:
                word = rf"(?<![^\W_]){re.escape(other)}(?![^\W_])" if other.isascii() else re.escape(other)
                yield from (Mention(*match.span(), name) for match in re.finditer(word, folded))
