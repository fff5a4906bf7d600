"""The passages of an example: texts that state a value, from the paper's template or a row's own words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from benchmarks.cmc_bench.construction.value_context import doubt
from benchmarks.cmc_bench.construction.value_reader import is_clause_end, is_within_moment
from benchmarks.cmc_bench.sources.cmc_source_row import Family, SourceRow
from benchmarks.values import compare
from benchmarks.values.clean_text import clean, fold
from benchmarks.values.dates_and_times import Moment, find_moments
from benchmarks.values.name_words import OTHER_NAMES, territories
from benchmarks.values.numerals import find_numbers
from benchmarks.values.parse_value import Amount, Polarity, Value, Words, parse
from benchmarks.values.question_facts import read_question
from benchmarks.values.units import PERCENT, unit_at_start

_NOUNS: Mapping[Family, str] = {"chartqa": "value", "mmmu": "answer"}
_FIGURE = re.compile(
    r"(?<![\w.,])(?P<sign>[-−+])?(?:[$€£¥] ?)?(?P<numeral>\d[\d,]*(?:\.\d+)?)(?: ?(?:%|[^\W\d_]+(?:/[^\W\d_]+)?))?(?!\w|[.,]\d)"
)
_NUMERAL = re.compile(r"\d+(?:[.,' \u00a0]\d+)*")
_DECIMALS = re.compile(r"([.,])(?:\d{1,2}|\d{4,})$")
_BESIDE_UNIT = re.compile(r"(?<=\d)(?=[^\W\d]|[%°$€£¥])|(?<=[$€£¥])(?=\d)")
_BEFORE_UNIT = re.compile(r"(\d|[$€£¥])\\s\+(?=[^\W\d]|\\?[%°$€£¥])")
_CLAUSE = re.compile(r"[.;!?]\s|,\s(?!the value|the answer)")
_COMPOUND = re.compile(r"[-–][^\W\d_]|@|\.[^\W\d_]")
_COMPOUND_BEFORE = re.compile(r"[^\W_][-–]$")
_NEXT_WORD = re.compile(r" ?[^\W\d_]+| ?%")

NOT_SPELLED = "the passage gives the answer in other words, which no other value can be put in the place of"
STATED_TWICE = "the passage has the answer's value a second time, in another form or of another thing"
OTHER_MEANING = "what the passage spells as the answer may also be another thing in it"
GOES_ON = "the passage says more than yes or no, which would contradict the other"


def template_passage(family: Family, value: str) -> str:
    """Return the passage that states ``value``; aligned and contradicting ones differ only in the value.

    The opening is that of the paper's Table 4, "According to the source, the value is 2015."
    """
    stated = " ".join(value.split())
    return f"According to the source, the {_NOUNS[family]} is {stated}{'' if stated.endswith('.') else '.'}"


def passage_stating(row: SourceRow, value: str) -> str:
    """Return ``row``'s passage with ``value`` in place of the gold, or the template's if it has none."""
    if not row.passage:
        return template_passage(row.family, value)
    text = row.passage
    if compare(value, row.answer, row.question).verdict == "same":
        return text
    for start, end in reversed(list(answer_spans(text, row.answer, row.question))):
        spelled, wrong = text[start:end], " ".join(value.split())
        text = (
            text[:start] + (wrong if spelled == row.answer else written_like(spelled, row.answer, wrong)) + text[end:]
        )
    return text


def twin_problem(row: SourceRow) -> str:
    """Return why no other value can be put in the place of the answer in ``row``'s passage; "" if one can.

    Each statement of the answer must be replaced, and nothing else: a template is written for it.
    """
    if not row.passage:
        return ""
    text, spans = row.passage, list(answer_spans(row.passage, row.answer, row.question))
    if not spans:
        return NOT_SPELLED
    value = parse(row.answer)
    if isinstance(value, Polarity):
        alone = len(spans) == 1 and not text[spans[0][1] :].strip(" .!\n") and not _CLAUSE.search(text[: spans[0][0]])
        return "" if alone else GOES_ON
    if any(doubt(text, start, end, row.answer, row.question) for start, end in spans):
        return OTHER_MEANING
    if isinstance(value, Words):
        return OTHER_MEANING if _names_elsewhere(text, row.answer, value, spans) else ""
    if isinstance(value, Amount) and len({_kind_of_number(text, start, end) for start, end in spans}) > 1:
        return OTHER_MEANING
    return STATED_TWICE if _mentions(clean(text), row.answer, value, row.question) > len(spans) else ""


def spells_answer(row: SourceRow) -> bool:
    """Return whether another value can be put in the place of the answer in ``row``'s passage; see :func:`twin_problem`."""
    return not twin_problem(row)


def written_like(spelled: str, answer: str, value: str) -> str:
    """Return ``value`` in the notation in which a passage spells ``answer``: its unit, its mark for decimals."""
    place, old, new = (_NUMERAL.search(text) for text in (spelled, answer, value))
    parsed = parse(spelled), parse(answer), parse(value)
    if not (place and old and new and all(isinstance(p, Amount) for p in parsed)):
        return value
    first, second, third = (p.number for p in parsed if isinstance(p, Amount))
    if third.unit and second.unit and third.unit != second.unit:
        return value
    if (
        not first.value
        or not second.value
        or first.readings[0].value != second.readings[0].value
        or first.scaled != second.scaled
    ):
        return value
    numeral = new[0]
    if _decimal_mark(place[0]) != _decimal_mark(new[0]) and "" not in (_decimal_mark(place[0]), _decimal_mark(new[0])):
        numeral = numeral.translate(str.maketrans(",.", ".,"))
    return spelled[: place.start()] + numeral + spelled[place.end() :]


def _decimal_mark(numeral: str) -> str:
    """Return the mark before the decimals of a numeral, "" if none is sure."""
    match = _DECIMALS.search(numeral)
    return match[1] if match else ""


def _mentions(text: str, answer: str, value: Value, question: str) -> int:
    """Return the number of numbers or moments in a cleaned text that are the answer's value, or may be it."""
    if isinstance(value, Moment):
        moments = (text[m.start : m.end] for m in find_moments(text.lower()))
        return sum(compare(moment, answer, question).verdict != "different" for moment in moments)
    if not isinstance(value, Amount):
        return 0
    readings = {abs(reading.value) for reading in value.number.readings}
    is_plain = value.number.unit is None and PERCENT not in read_question(question).units
    return sum(
        not (is_plain and number.unit == PERCENT)
        and (value.number.form == "year" or not is_within_moment(text, number.start, number.end))
        and (
            any(abs(reading.value) in readings for reading in number.readings)
            or compare(text[number.start : number.end], answer, question).verdict != "different"
        )
        for number in find_numbers(text)
    )


def _names_elsewhere(text: str, answer: str, value: Words, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a name, a part of it, or another name of its country stands in a text beside its statements."""
    for start, end in spans:
        is_capital = text[start:end][:1].isupper()
        at_start = not text[:start].strip() or text[:start].rstrip(" \"'(")[-1:] in ".!?:;\n"
        if _COMPOUND.match(text, end) or _COMPOUND_BEFORE.search(text[:start][-2:]):
            return True
        if is_capital != answer[:1].isupper() and not (is_capital and at_start) and len(spans) > 1:
            return True
    rest = text
    for start, end in reversed(spans):
        rest = rest[:start] + " | " + rest[end:]
    names = (
        [word for word in re.findall(r"[^\W\d_]{3,}", answer) if word[:1].isupper()] if " " in answer.strip() else []
    )
    if any(re.search(rf"(?<!\w){word}(?!\w)", rest) for word in names):
        return True
    codes = territories()
    country = value.country or codes.get(OTHER_NAMES.get(value.folded, ""))
    words = [OTHER_NAMES.get(word, word) for word in re.findall(r"[^\W_]+", fold(clean(rest)))] if country else []
    sizes = range(1, 5)
    return any(codes.get(" ".join(words[at : at + size])) == country for at in range(len(words)) for size in sizes)


def _kind_of_number(text: str, start: int, end: int) -> tuple[object, ...]:
    """Return what tells a number from an equal one of another thing: its unit and magnitude, or the word behind it."""
    numbers = find_numbers(clean(text[start : end + 24]))
    if numbers and numbers[0].unit:
        return numbers[0].unit, numbers[0].scaled
    match = _NEXT_WORD.match(text, end)
    return (match[0].strip().casefold() if match else "",)


def answer_spans(
    text: str, answer: str, question: str = "", verdicts: Collection[str] = ("same",)
) -> Iterator[tuple[int, int]]:
    """Yield the spans in which ``text`` states ``answer``, in order.

    They match its spelling, whatever the case and spacing; for a number that does not occur in this spelling, the numerals of
    its value, with or without the unit (``1204`` for ``1,204``): those that compare to it with one of ``verdicts``. The 12 of a
    date and the "no" of "no doubt" state nothing.
    """
    # A blank between a number and its unit does not matter.
    spelled = r"\s+".join(_BESIDE_UNIT.sub(r"\\s*", re.escape(word)) for word in answer.split())
    spelled = _BEFORE_UNIT.sub(r"\1\\s*", spelled)
    # 12 is not stated by 12.5, 1,204 by 204, nor 5 by -5; a range such as 2005-2008 states 2008.
    pattern = re.compile(rf"(?<!\w)(?<!\d[.,])(?<!\s[-−])(?<!^[-−]){spelled}(?!\w)(?![.,]\d)", re.IGNORECASE)
    value = parse(answer)
    spans = [match.span() for match in pattern.finditer(text) if _stands_for(value, text, *match.span())]
    if isinstance(value, Amount) and value.number.unit is None and PERCENT not in read_question(question).units:
        spans = [(start, end) for start, end in spans if not _is_percent(text, end)] or spans
    if not spans and isinstance(value, Amount):
        for figure in _FIGURE.finditer(text):
            stated = (s for s in _readings(figure) if compare(text[slice(*s)], answer, question).verdict in verdicts)
            spans += (span for span in islice(stated, 1) if _stands_for(value, text, *span))
    yield from spans


def _stands_for(answer: Value, text: str, start: int, end: int) -> bool:
    """Return whether what is spelled as the answer can state it."""
    if isinstance(answer, Polarity):
        return is_clause_end(text, start)
    return not isinstance(answer, Amount) or answer.number.form == "year" or not is_within_moment(text, start, end)


def _is_percent(text: str, end: int) -> bool:
    unit = unit_at_start(text[end : end + 12].lstrip())
    return unit is not None and unit[0] == PERCENT


def _readings(figure: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans that a figure is: with its sign and the unit or word behind it, then without the word, then bare."""
    start, end = figure.span("numeral")
    yield figure.span()
    if not figure.string[end : end + 1].isalnum():
        yield figure.start(), end
        if not figure["sign"]:
            yield start, end


def states(text: str, answer: str, question: str = "", verdicts: Collection[str] = ("same",)) -> bool:
    """Return whether ``text`` states ``answer``; see :func:`answer_spans`."""
    return next(answer_spans(text, answer, question, verdicts), None) is not None
