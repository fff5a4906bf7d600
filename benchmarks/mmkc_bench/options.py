"""The four options of a multiple choice: read out of a published query, or made where a row has none (section 4.3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.base import digest
from benchmarks.mmkc_bench.constants import LETTERS
from benchmarks.text.answer_equality import normalise, same_value

_MARKS = (
    re.compile(r"^[ \t]*\(?([A-D])[.):][ \t]*", re.MULTILINE),
    re.compile(r"(?:(?<=\s)|\A)\(?([A-D])[.):][ \t]*"),
)
"""An option's letter at the beginning of a line or, where options are not on lines of their own, of a word."""

_WORD = re.compile(r"\w+")


def read_options(query: str) -> Mapping[str, str]:
    """The options in a query, letter to text: each of the letters once, in order, and the last ones there are; else none."""
    for mark in _MARKS:
        marks = list(mark.finditer(query))
        four = marks[-len(LETTERS) :]
        if tuple(found[1] for found in four) != LETTERS:
            continue
        ends = [*(found.start() for found in four[1:]), len(query)]
        texts = [query[found.end() : end].strip() for found, end in zip(four, ends, strict=True)]
        if all(texts):
            return dict(zip(LETTERS, texts, strict=True))
    return {}


def query(question: str, options: Sequence[str]) -> str:
    """A question with its options, in the layout of the authors' first published rows (``test.json``)."""
    lines = [f"{letter}. {text}" for letter, text in zip(LETTERS, options, strict=True)]
    return "\n".join([question, "Answers:", *lines, ""])


def order(example: str, seed: int) -> tuple[int, ...]:
    """The places 0 to 3 in the order in which the options own, first and second counter, distractor stand."""
    return tuple(sorted(range(len(LETTERS)), key=lambda place: digest([seed, "options", example, place])))


def distractor(example: str, taken: Sequence[str], candidates: Iterable[str], seed: int) -> str:
    """A seeded one of ``candidates`` that is none of ``taken``, and neither says nor is said by any; empty if there is none."""
    drawn = sorted(set(candidates), key=lambda candidate: digest([seed, "distractor", example, candidate]))
    return next((each for each in drawn if each.strip() and not any(alike(each, other) for other in taken)), "")


def alike(one: str, other: str) -> bool:
    """Whether two answers are the same after normalisation, or one's words stand in the other's."""
    return same_value(one, other) or stands_in(one, other) or stands_in(other, one)


def stands_in(words: str, text: str) -> bool:
    """Whether all words of ``words`` stand in ``text``, side by side and in order, after normalisation; blank ones do not."""
    inner, outer = (" ".join(_WORD.findall(normalise(each))) for each in (words, text))
    return bool(inner) and f" {inner} " in f" {outer} "
