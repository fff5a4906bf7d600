"""The passages of an example: texts that state a value, from the paper's template or a row's own words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from benchmarks.cmc_bench.construction.value_reader import is_clause_end, is_within_moment
from benchmarks.cmc_bench.sources.base import Family, SourceRow
from benchmarks.values import compare
from benchmarks.values.parse import Amount, Polarity, Value, parse
from benchmarks.values.question import read_question
from benchmarks.values.units import PERCENT, unit_at_start

_NOUNS: Mapping[Family, str] = {"chartqa": "value", "mmmu": "answer"}
_FIGURE = re.compile(
    r"(?<![\w.,])(?P<sign>[-−+])?(?:[$€£¥] ?)?(?P<numeral>\d[\d,]*(?:\.\d+)?)(?: ?(?:%|[^\W\d_]+(?:/[^\W\d_]+)?))?(?!\w|[.,]\d)"
)


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
    stated, text = " ".join(value.split()), row.passage
    if compare(value, row.answer, row.question).verdict == "same":
        return text
    for start, end in reversed(list(answer_spans(text, row.answer, row.question))):
        text = text[:start] + stated + text[end:]
    return text


def spells_answer(row: SourceRow) -> bool:
    """Return whether another value can be put in the place of the answer in ``row``'s passage; a template is written for it."""
    return not row.passage or states(row.passage, row.answer, row.question)


def answer_spans(
    text: str, answer: str, question: str = "", verdicts: Collection[str] = ("same",)
) -> Iterator[tuple[int, int]]:
    """Yield the spans in which ``text`` states ``answer``, in order.

    They match its spelling, whatever the case and spacing; for a number that does not occur in this spelling, the numerals of
    its value, with or without the unit (``1204`` for ``1,204``): those that compare to it with one of ``verdicts``. The 12 of a
    date and the "no" of "no doubt" state nothing.
    """
    spelled = r"\s+".join(map(re.escape, answer.split()))
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
