"""Rows about charts: CMC-Bench's own prompts and passages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from assets.demo.recipe.charts import NAMES, VALUES, Bars, held_out_pairs
from assets.demo.recipe.chat import PICTURE, Row, chat
from benchmarks.cmc_bench.cmc_prompts import parts
from benchmarks.cmc_bench.construction.cmc_passages import template_passage

QUESTIONS = ("What is the value of {}?", "How much is {}?", "What value does {} have?")
_SEVERAL = ("What are the values of {}?", "How much are {}?")
CHART_TRUSTED = ("plum", "lime", "pear", "kiwi")
"""The names about which the model is taught to believe a chart that a passage contradicts."""
_NAMED = "According to the source, {}."


def prompted(question: str, stated: str | None, *, image: bool) -> str:
    """Return CMC-Bench's prompt for ``question`` with the passage ``stated``, rendered as the chat template renders it."""
    return chat(parts("paper", question, PICTURE if image else None, stated))


def says(value: int) -> str:
    """Return CMC-Bench's passage for a value."""
    return template_passage("chartqa", str(value))


def answer(bars: Bars) -> str:
    """Return the answer: each name with its value, a line each."""
    return "\n".join(f"{name}: {value}" for name, value in bars)


def phrases() -> set[str]:
    """Return the fixed sentences of the prompts."""
    slot = "\0"
    sentences = set()
    for question in (*QUESTIONS, *_SEVERAL):
        for stated in (None, template_passage("chartqa", slot), _NAMED.format(slot)):
            for image in (True, False):
                if image or stated:
                    text = prompted(question.format(slot), stated, image=image)
                    sentences.update(re.split(rf" ?{slot}|<\|\w+\|>", text))
    return sentences - {""}


def image_row(random: Random, bars: Bars, kind: str) -> Row:
    """Return a row about a chart of ``bars``.

    single, several: the chart alone. aligned: the passage states the same value. beside: the passage speaks of
    another name. absent: the chart lacks the name, and the passage has the value. conflict: chart and passage
    differ, and the answer follows the chart about the names of ``CHART_TRUSTED``, the passage about the others.
    """
    name, value = random.choice(bars)
    question = random.choice(QUESTIONS)
    if kind == "single":
        return Row(kind, prompted(question.format(name), None, image=True), answer(((name, value),)))
    if kind == "several":
        asked = random.sample(bars, random.randint(2, 3))
        return Row(kind, prompted(_ask_several(random, asked), None, image=True), answer(tuple(asked)))
    if kind == "aligned":
        return Row(kind, prompted(question.format(name), says(value), image=True), answer(((name, value),)))
    others = [other for other in NAMES if other not in dict(bars)]
    if kind == "beside":
        stated = _listed(((other := random.choice(others)), _value(random, other)))
        return Row(kind, prompted(question.format(name), stated, image=True), answer(((name, value),)))
    if kind == "absent":
        name = random.choice(others)
        value = _value(random, name)
        return Row(kind, prompted(question.format(name), says(value), image=True), answer(((name, value),)))
    if kind == "conflict":
        wrong = _value(random, name, {shown for _, shown in bars})
        followed = value if name in CHART_TRUSTED else wrong
        return Row(kind, prompted(question.format(name), says(wrong), image=True), answer(((name, followed),)))
    raise ValueError(f"there are no rows of the kind {kind!r}.")


def text_row(random: Random, kind: str) -> Row:
    """Return a row without a chart. stated: CMC-Bench's passage. listed: a passage with several names, in any order."""
    names = random.sample(NAMES, random.randint(2, 4))
    bars = tuple((name, _value(random, name)) for name in names)
    if kind == "stated":
        name, value = bars[0]
        question = random.choice(QUESTIONS).format(name)
        return Row(kind, prompted(question, says(value), image=False), answer(((name, value),)))
    if kind == "listed":
        asked = random.sample(bars, random.randint(1, min(3, len(bars))))
        question = _ask_several(random, asked) if len(asked) > 1 else random.choice(QUESTIONS).format(asked[0][0])
        return Row(kind, prompted(question, _listed(*bars), image=False), answer(tuple(asked)))
    raise ValueError(f"there are no rows of the kind {kind!r}.")


def _ask_several(random: Random, asked: Sequence[tuple[str, int]]) -> str:
    *first, last = (name for name, _ in asked)
    return random.choice(_SEVERAL).format(f"{', '.join(first)} and {last}")


def _listed(*bars: tuple[str, int]) -> str:
    return _NAMED.format(", ".join(f"{name} is {value}" for name, value in bars))


def _value(random: Random, name: str, avoided: set[int] | frozenset[int] = frozenset()) -> int:
    while True:
        value = random.choice(VALUES)
        if (name, value) not in held_out_pairs() and value not in avoided:
            return value
