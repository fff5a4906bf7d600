"""The passages of an example: texts that state a value, from the paper's template or a row's own words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from benchmarks.cmc_bench.sources.base import Family, SourceRow
from benchmarks.values import compare
from benchmarks.values.parse import Amount, parse

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


def answer_spans(
    text: str, answer: str, question: str = "", verdicts: Collection[str] = ("same",)
) -> Iterator[tuple[int, int]]:
    """Yield the spans in which ``text`` states ``answer``, in order.

    They match its spelling, whatever the case and spacing; for a number that does not occur in this spelling, the numerals of
    its value, with or without the unit (``1204`` for ``1,204``): those that compare to it with one of ``verdicts``.
    """
    spelled = r"\s+".join(map(re.escape, answer.split()))
    # 12 is not stated by 12.5, 1,204 by 204, nor 5 by -5; a range such as 2005-2008 states 2008.
    pattern = re.compile(rf"(?<!\w)(?<!\d[.,])(?<!\s[-−])(?<!^[-−]){spelled}(?!\w)(?![.,]\d)", re.IGNORECASE)
    spans = [match.span() for match in pattern.finditer(text)]
    if not spans and isinstance(parse(answer), Amount):
        for figure in _FIGURE.finditer(text):
            stated = (s for s in _readings(figure) if compare(text[slice(*s)], answer, question).verdict in verdicts)
            spans += islice(stated, 1)
    yield from spans


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
