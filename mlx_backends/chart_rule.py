"""Rule that answers a question on a chart from the lines of text that were read on it.

1. **Numbers.** A line that is a number, or a number beside at most four words, is a value. No value is: a number of an axis (of
   a row or a column of at least four whose amounts grow evenly with their place), a number that the question names, and a year
   (2021, 2021/22), unless the question asks for one. A number in brackets that fills its line is negative.
2. **Labels.** A line is a label as far as its words are the question's: by the share of its words, and the letters of those,
   shared among the lines that have the same word. Words of five letters match with a slip. Lines wider than half of the text,
   and lines that run upwards, are titles, and no labels.
3. **The answer** is the value that is in a row or a column with the heaviest labels (or has them beside it in its own line), the
   nearest to them if several are.
4. **Without a label,** the answer is the largest value if the question asks for the highest one, the smallest if for the lowest,
   the only one if there is no other, and otherwise none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

from benchmarks.values.clean_text import clean, fold
from benchmarks.values.name_words import OTHER_NAMES, canonical, word_set
from benchmarks.values.numerals import Number, find_numbers

MOST_LINES = 200
"""The lines of a chart that are looked at, from the top."""

_MOST_WORDS = 4
_LONGEST_LINE = 200
_LONGEST_QUESTION = 1_000
_LONGEST_TEXT = 20_000
_SHARE = 0.5
"""The share of a line's words that make it a label, and of the width of all text that makes it a title."""
_ALIKE = 0.8
"""The similarity (Ratcliff and Obershelp) from which two words of at least five letters are one."""
_FROM_LETTERS = 5
_FEWEST_TICKS = 4
_NEAREST = 3
"""The next numbers in a row or a column that may be on the same axis."""
_OFF = 0.3
"""The share of its height by which a number of an axis may be off its place."""
_NOTE = re.compile(r"\W*(?:©|source\b|note\b)", re.IGNORECASE)
_INITIALS = re.compile(r"\b(?:[a-z]\.){2,}")
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?")
_NO_LABEL = word_set("""
a an the of in on at to by for from with and or as is are was were be been it its that this these those there
what which who when where how many much do does did has have had say says said find give tell me can you
value values number amount percentage percent share rate total figure bar bars chart graph segment line pie
""")
_HIGHEST = word_set("highest largest biggest most maximum max peak greatest longest tallest")
_LOWEST = word_set("lowest smallest least minimum min shortest tiniest fewest")
_SENTENCE_END = re.compile(r"(?<!\bMrd)(?<!\bMio)[.!?](?=\s)|\n", re.IGNORECASE)
_TWO_YEARS = re.compile(r"[12]\d{3}/(?:\d\d){1,2}")
_MINUS_BEFORE = re.compile(r"(?:^|[(|:]|(?:^|\s)(?:\S*[^\W\d_]\S*|[^\w\s]+)\s)-$")
"""A minus sign that touches the number behind it, and follows no number: "was -4.6" and "Q3 -4.6", but not "2017 -2019"."""
_BRACKETS = re.compile(r"(?:^|\n|\|)\s*\($"), re.compile(r"\)[\s%]*(?:$|\n|\|)")
"""The surroundings of a number that is negative in accounts: brackets, and nothing else in its line or its cell."""
_ASKS_YEAR = re.compile(r"\b(?:when|(?:what|which) year)\b")


class Line(NamedTuple):
    """A line of text and its box in pixels, the origin in the upper left corner."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


class _Value(NamedTuple):
    text: str
    amount: float
    line: Line
    words: tuple[str, ...]


def answer_on_chart(question: str, lines: Sequence[Line]) -> str:
    """Return the value that answers ``question`` by the rule, as it is printed; empty where the rule gives none."""
    asked = set(_words(question[:_LONGEST_QUESTION]))
    asks_year = _asks_year(question)
    lines = [line for line in lines[:MOST_LINES] if len(line.text) <= _LONGEST_LINE and not _NOTE.match(line.text)]
    numbers = [value for line in lines if (value := _value(line, asks_year))]
    axis = _axis_numbers(numbers)
    values = [value for value in numbers if value not in axis and (asks_year or value.text not in asked)]
    weights = _label_weights(asked, lines)
    scores = [(_score(value, weights), value) for value in values]
    if best := max((score for score, _ in scores if score[0] > 0), default=None):
        return next(value.text for score, value in scores if score == best)
    return _extreme(values, asked)


def _extreme(values: Sequence[_Value], asked: Set[str]) -> str:
    """Return the only value, or the highest or lowest one if the words ``asked`` say so; else nothing."""
    by_amount = sorted(values, key=lambda value: value.amount)
    if by_amount and (asked & _HIGHEST or len(values) == 1):
        return by_amount[-1].text
    return by_amount[0].text if by_amount and asked & _LOWEST else ""


def _asks_year(question: str) -> bool:
    return _ASKS_YEAR.search(fold(clean(question[:_LONGEST_QUESTION]))) is not None


def _words(text: str) -> list[str]:
    folded = _INITIALS.sub(lambda match: match[0].replace(".", ""), fold(clean(text)))
    return [part for word in _WORD.findall(folded) for part in OTHER_NAMES.get(word, canonical(word)).split()]


def _value(line: Line, asks_year: bool) -> _Value | None:
    """Return the number of a line that may be a value, with the words beside it."""
    text = clean(line.text)
    numbers = [number for number in find_numbers(text) if not number.spelled and _is_wanted(number, text, asks_year)]
    if len(numbers) != 1 or text[: numbers[0].start][-1:].isalpha():  # "instructi0ns"
        return None
    start, end = numbers[0].start, numbers[0].end
    words = [word for word in _words(f"{text[:start]} {text[end:]}") if not word[0].isdigit()]
    sign = _sign(text, numbers[0])
    amount = float(numbers[0].value) * (-1 if sign else 1)
    return _Value(sign + text[start:end], amount, line, tuple(words)) if len(words) <= _MOST_WORDS else None


def _sign(text: str, number: Number) -> str:
    """Return the minus sign that a number has by what is around it in a text; empty if none, or if it is negative already."""
    before, after = text[: number.start][-20:], text[number.end :][:20]
    has_brackets = _BRACKETS[0].search(before) and _BRACKETS[1].match(after)
    return "-" if number.value > 0 and (has_brackets or _MINUS_BEFORE.search(before)) else ""


def _is_wanted(number: Number, text: str, asks_year: bool) -> bool:
    is_year = number.form == "year" or _TWO_YEARS.fullmatch(text, number.start, number.end) is not None
    return is_year == asks_year and number.form != "ordinal"


def _axis_numbers(values: Sequence[_Value]) -> set[_Value]:
    """Return the values of axes: at least four in a row or a column, as far apart as their amounts, in whole steps."""
    axis: set[_Value] = set()
    bare = [value for value in values if not value.words]
    for across, is_aligned in ((0, _in_row), (1, _in_column)):
        for first in bare:
            start = _middle(first.line)[across]
            aligned = [(_middle(value.line)[across], value) for value in bare if is_aligned(first.line, value.line)]
            later = sorted((pair for pair in aligned if pair[0] - start >= 1), key=lambda pair: pair[0])
            for end, second in later[:_NEAREST]:
                rise = second.amount - first.amount
                ticks = [
                    value
                    for place, value in aligned
                    if rise
                    and abs(start + (value.amount - first.amount) * (end - start) / rise - place)
                    <= _height(value.line) * _OFF
                ]
                if len(ticks) >= _FEWEST_TICKS and _in_steps([value.amount for value in ticks]):
                    axis.update(ticks)
    return axis


def _in_steps(amounts: Sequence[float]) -> bool:
    """Return whether all differences are whole multiples of the smallest one."""
    ordered = sorted(amounts)
    steps = [high - low for low, high in pairwise(ordered)]
    return min(steps) > 0 and all(abs(step / min(steps) - round(step / min(steps))) < 1e-6 for step in steps)


def _middle(line: Line) -> tuple[float, float]:
    return (line.left + line.right) / 2, (line.top + line.bottom) / 2


def _width(line: Line) -> float:
    return line.right - line.left


def _height(line: Line) -> float:
    return line.bottom - line.top


def _in_row(a: Line, b: Line) -> bool:
    return abs(_middle(a)[1] - _middle(b)[1]) <= min(_height(a), _height(b)) / 2


def _in_column(a: Line, b: Line) -> bool:
    return abs(_middle(a)[0] - _middle(b)[0]) <= max(min(_width(a), _width(b)), _height(b)) / 2


def _label_weights(asked: set[str], lines: Sequence[Line]) -> dict[Line, float]:
    """Return the weight of each line that is a label of the question."""
    width = max((line.right for line in lines), default=0) - min((line.left for line in lines), default=0)
    words = {line: [w for w in _words(line.text) if w not in _NO_LABEL] for line in lines}
    common = Counter(word for own in words.values() for word in set(own))
    wanted = asked - _NO_LABEL
    weights: dict[Line, float] = {}
    for line, own in words.items():
        matched = [word for word in own if _is_asked(word, wanted)]
        share = len(matched) / len(own) if own else 0
        if share >= _SHARE and _width(line) <= width * _SHARE and not _is_turned(line):
            weights[line] = share * share * sum(len(word) / common[word] for word in matched)
    return weights


def _is_turned(line: Line) -> bool:
    """Return whether a line of several letters runs upwards: the title of an axis."""
    return len(line.text) > 12 and _height(line) > _width(line)


def _is_asked(word: str, asked: set[str]) -> bool:
    if word in asked:
        return True
    if len(word) < _FROM_LETTERS or word[0].isdigit():
        return False
    long = (other for other in asked if len(other) >= _FROM_LETTERS)
    return any(SequenceMatcher(None, word, other).ratio() >= _ALIKE for other in long)


def _score(value: _Value, weights: dict[Line, float]) -> tuple[float, float]:
    """Return the weight of the labels in a row or column with a value, and minus its distance to the heaviest of them."""
    aligned = [
        (weight, -_gap(label, value.line))
        for label, weight in weights.items()
        if label == value.line or _in_row(label, value.line) or _in_column(label, value.line)
    ]
    return (sum(weight for weight, _ in aligned), max(aligned)[1]) if aligned else (0.0, 0.0)


def _gap(a: Line, b: Line) -> float:
    """Return the distance of two boxes in pixels."""
    across = max(a.left - b.right, b.left - a.right, 0)
    down = max(a.top - b.bottom, b.top - a.bottom, 0)
    return float((across**2 + down**2) ** 0.5)


def value_in_text(question: str, text: str) -> str:
    """Return the number that ``text`` states for ``question``, as it is written; empty if it has none.

    Of several, it is the first one of the sentence that has most of the question's words. Numbers that the question names do not
    count, and years only if the question asks for one or there is no other number.
    """
    asked = set(_words(question[:_LONGEST_QUESTION]))
    sentences = _SENTENCE_END.split(clean(text[:_LONGEST_TEXT]))
    common = {sentence: len(asked & set(_words(sentence))) for sentence in sentences}
    ranked = sorted(sentences, key=lambda sentence: -common[sentence])
    asks_year = _asks_year(question)
    for years in (asks_year, not asks_year):
        for sentence in ranked:
            for number in find_numbers(sentence):
                value = sentence[number.start : number.end].rstrip(" .,")
                if _is_wanted(number, sentence, years) and (asks_year or value not in asked):
                    return _sign(sentence, number) + value
    return ""
