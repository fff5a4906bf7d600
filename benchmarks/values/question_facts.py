"""The facts that a question settles about a value: the unit and magnitude it asks in, its year, its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from benchmarks.values.clean_text import clean, fold
from benchmarks.values.dates_and_times import find_moments
from benchmarks.values.name_words import words_of
from benchmarks.values.numerals import MAGNITUDES, Number, find_numbers
from benchmarks.values.units import PERCENT, Unit, unit_at_start

_LONGEST = 20_000
_LETTERS = "ABCDEFGHIJ"
_LABEL = re.compile(r"(?:(?<=\s)|(?<![^(\[]))[*_]{0,2}[(\[]?([A-J])[)\].:]{1,2}[*_]{0,2}(?=\s|[^\W_])")
_PERCENT = re.compile(r"percent|per cent|%|\b(?:share|proportion|fraction)\b|\bprozent|\banteil")
_COUNT = re.compile(r"\bhow many (?!percent|per cent|%)")
_UNITS = re.compile(r"\b(?:how (?:many|much)|in|\()\s?((?:[^\W\d_]|[°µ²³$€£¥%/^ ]){1,30})", re.IGNORECASE)
_MAGNITUDE = re.compile(r"(?<![a-z])(hundred|thousand|million|billion|trillion|mn|bn)s?(?![a-z])")
_POLAR = re.compile(r"\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b")
_ORDERED = re.compile(
    r"\b(?:(?:in|what|which)(?: (?:what|which|the|right|correct|exact|same|that|this|rank|size|time|(?:as|des)cending"
    r"|chronological|alphabetical))* order(?! to\b)|order (?:the|them|these)|ordered|sorted?|rank(?:ed|ing)?|sequence"
    r"|(?:as|des)cending|chronological(?:ly)?|alphabetical(?:ly)?|first\b.{1,60}\bthen"
    r"|(?:from )?(?:highest|largest|most|best|biggest|longest|latest|newest) to (?:the )?(?:lowest|smallest|least|worst|shortest|"
    r"earliest|oldest)|(?:from )?(?:lowest|smallest|least|worst|shortest|earliest|oldest) to (?:the )?(?:highest|largest|most|"
    r"best|biggest|longest|latest|newest)|from (?:highest|lowest|largest|smallest|most|least|first)|der reihe nach|reihenfolge)\b"
)


@dataclass(frozen=True, slots=True)
class Question:
    """The features of a question that bear on a value."""

    folded: str
    words: frozenset[str]
    numbers: tuple[Number, ...]
    years: frozenset[int]
    units: tuple[Unit, ...]
    magnitude: Fraction | None
    polar: bool
    ordered: bool
    options: Mapping[str, str]


@lru_cache(maxsize=512)
def read_question(question: str) -> Question:
    """Return what a question says about the value that answers it."""
    cleaned = clean(question[:_LONGEST])
    folded = fold(cleaned)
    numbers = tuple(find_numbers(cleaned))
    years = {int(n.value) for n in numbers if n.form == "year"} | {
        parts[0] for m in find_moments(folded) if m.kind in ("date", "quarter") for parts in m.readings if parts[0]
    }
    percent = _PERCENT.search(folded) is not None and not _COUNT.search(folded)
    units = tuple(unit[0] for m in _UNITS.finditer(cleaned) if (unit := unit_at_start(m[1])))
    magnitude = _MAGNITUDE.search(folded)
    size = Fraction(MAGNITUDES[magnitude[1]]) if magnitude else None
    return Question(
        folded,
        frozenset(words_of(folded)),
        numbers,
        frozenset(years),
        (PERCENT, *units) if percent else units,
        size,
        _POLAR.match(folded) is not None,
        _ORDERED.search(folded) is not None,
        parse_options(question),
    )


@lru_cache(maxsize=512)
def parse_options(question: str) -> Mapping[str, str]:
    """Return the text of each lettered option that a question prints, from A on without gaps; empty if it prints none."""
    every = list(_LABEL.finditer(question[:_LONGEST]))
    first_of_lines = [m for m in every if (question[: m.start()].rstrip(" \t") or "\n").endswith("\n")]
    labels: list[re.Match[str]] = []
    for found in (first_of_lines, every):
        labels = labels if len(labels) > 1 else []
        for match in found if not labels else ():
            if match[1] == _LETTERS[len(labels) : len(labels) + 1]:
                labels.append(match)
    if len(labels) < 2:
        return {}
    ends = [m.start() for m in labels[1:]] + [len(question)]
    texts = {m[1]: question[m.end() : end].strip(" \t\n,;|/") for m, end in zip(labels, ends, strict=True)}
    return texts if all(texts.values()) else {}
