"""The texts of an example: what states a value, by the paper's template or in a row's own words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from benchmarks.cmc_bench.sources import Family, SourceRow
from benchmarks.text.answer_equality import number, same_value

_NOUNS: Mapping[Family, str] = {"chartqa": "value", "mmmu": "answer"}
_FIGURE = re.compile(r"(?<![\w.,])[-−+]?(?:[$€£¥] ?)?\d[\d,]*(?:\.\d+)?(?: ?%)?(?![\w]|[.,]\d)")


def passage(family: Family, value: str) -> str:
    """The passage that states ``value``; aligned and contradicting ones differ in the value alone.

    The opening is that of the paper's Table 4, "According to the source, the value is 2015."
    """
    stated = " ".join(value.split())
    return f"According to the source, the {_NOUNS[family]} is {stated}{'' if stated.endswith('.') else '.'}"


def stating(row: SourceRow, value: str) -> str:
    """The passage of ``row`` that states ``value``: its own with the gold replaced wherever it stands, else the template's."""
    if not row.passage:
        return passage(row.family, value)
    stated, text = " ".join(value.split()), row.passage
    if same_value(value, row.answer):
        return text
    for start, end in reversed(list(places(text, row.answer))):
        text = text[:start] + stated + text[end:]
    return text


def places(text: str, answer: str) -> Iterator[tuple[int, int]]:
    """Where ``text`` states ``answer``, from start to end, in order: as it is spelled, whatever the case and the spaces; for a
    number where it is not spelled so, the figures with its value (``1204`` for ``1,204``)."""
    spelled = r"\s+".join(map(re.escape, answer.split()))
    # 12 is not stated by 12.5, 1,204 by 204, nor 5 by -5; a range such as 2005-2008 states 2008.
    whole = re.compile(rf"(?<!\w)(?<!\d[.,])(?<!\s[-−])(?<!^[-−]){spelled}(?!\w)(?![.,]\d)", re.IGNORECASE)
    found = [match.span() for match in whole.finditer(text)]
    if not found and number(answer) is not None:
        found = [match.span() for match in _FIGURE.finditer(text) if same_value(match[0], answer)]
    yield from found


def states(text: str, answer: str) -> bool:
    """Whether ``text`` states ``answer``."""
    return next(places(text, answer), None) is not None
