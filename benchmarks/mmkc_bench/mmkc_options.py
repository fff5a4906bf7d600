"""The four options of a multiple choice, parsed from a published query or constructed for a row without any (section 4.3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from benchmarks.mmkc_bench.mmkc_constants import LETTERS
from benchmarks.text.normal_form import normalise
from benchmarks.values import compare
from benchmarks.vocabulary import digest

_MARKS = (
    re.compile(r"^[ \t]*\(?([A-D])[.):][ \t]*", re.MULTILINE),
    re.compile(r"(?:(?<=\s)|\A)\(?([A-D])[.):][ \t]*"),
)
"""An option's letter at the beginning of a line or, if options share a line, of a word."""

_WORD = re.compile(r"\w+")


def read_options(query: str) -> Mapping[str, str]:
    """Return the options in a query, letter to text, or none: each letter once, in order, taking the last four letters."""
    for mark in _MARKS:
        marks = list(mark.finditer(query))
        four = marks[-len(LETTERS) :]
        if tuple(match[1] for match in four) != LETTERS:
            continue
        ends = [*(match.start() for match in four[1:]), len(query)]
        texts = [query[match.end() : end].strip() for match, end in zip(four, ends, strict=True)]
        if all(texts):
            return dict(zip(LETTERS, texts, strict=True))
    return {}


def format_query(question: str, options: Sequence[str]) -> str:
    """Return a question with its options, in the layout of the authors' first published rows (``test.json``)."""
    lines = [f"{letter}. {text}" for letter, text in zip(LETTERS, options, strict=True)]
    return "\n".join([question, "Answers:", *lines, ""])


def option_order(example: str, seed: int) -> tuple[int, ...]:
    """Return the places 0 to 3 of the own answer, the first and second counter answer and the distractor, in random order."""
    return tuple(sorted(range(len(LETTERS)), key=lambda place: digest([seed, "options", example, place])))


def choose_distractor(
    example: str, taken: Sequence[str], answers: Sequence[str], uses: Counter[int], seed: int, question: str = ""
) -> str:
    """Return one of the right ``answers`` of other examples that differs from all of ``taken`` without doubt; "" for none.

    Those come first that were chosen least often: ``uses`` counts it by place, and is updated. An answer that is right in many
    examples is then a distractor as often, and does not tell which it is. The seed decides between equals.
    """

    def fits(answer: str) -> bool:
        return all(
            compare(answer, other, question).verdict == "different" and not overlaps(answer, other) for other in taken
        )

    places = sorted(
        range(len(answers)), key=lambda place: (uses[place], digest([seed, "distractor", example, answers[place]]))
    )
    chosen = next((place for place in places if answers[place].strip() and fits(answers[place])), None)
    if chosen is None:
        return ""
    uses[chosen] += 1
    return answers[chosen]


def overlaps(answer: str, other: str, question: str = "") -> bool:
    """Return whether two answers are the same value, or one contains the other's words."""
    is_same = compare(answer, other, question).verdict == "same"
    return is_same or occurs_in(answer, other) or occurs_in(other, answer)


def occurs_in(words: str, text: str) -> bool:
    """Return whether ``words`` occur in ``text``, adjacent and in order, after normalisation; blank words do not."""
    inner, outer = (" ".join(_WORD.findall(normalise(phrase))) for phrase in (words, text))
    return bool(inner) and f" {inner} " in f" {outer} "
