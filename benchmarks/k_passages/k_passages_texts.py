"""The words of passages: statements of a value as the answer to a question, and the sentences that lengthen them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from benchmarks.cmc_bench.construction.cmc_passages import template_passage
from benchmarks.hash_collections import hash64

_WORDINGS = (
    'On the question "{question}", a report gives {value}.',
    'Asked "{question}", the records say {value}.',
    'One source answers "{question}" with {value}.',
    'For "{question}", the published figure is {value}.',
    '"{question}" According to a summary, it is {value}.',
    'A note on "{question}" states {value}.',
    'The entry for "{question}" reads {value}.',
    'In reply to "{question}", an article names {value}.',
    'A table lists {value} under "{question}".',
    'Those who looked into "{question}" arrived at {value}.',
)
"""Ten ways to say the same, so that no passage of an instance repeats another."""

_FILLER = (
    "The publication describes how its contents were collected and who checked them.",
    "Readers who want to know more are referred to the appendix.",
    "Several sections deal with earlier work and with questions that remain open.",
    "The authors thank the offices that answered their letters.",
    "A list of corrections is kept and can be read on request.",
    "Terms are used as in the preceding edition unless stated otherwise.",
)
"""Sentences without a value."""


def is_template(passage: str, value: str) -> bool:
    """Return whether a passage is the sentence that CMC-Bench writes, which does not name its question."""
    return any(passage == template_passage(family, value) for family in ("chartqa", "mmmu"))


def wording_order(seed: int, example: str) -> list[int]:
    """Return the order in which an example uses the wordings."""
    return sorted(range(len(_WORDINGS)), key=lambda number: hash64(f"{seed}|wording|{example}|{number}"))


def statement(wording: int, question: str, value: str) -> str:
    """Return a passage that states a value as the answer to a question."""
    return _WORDINGS[wording].format(question=" ".join(question.split()), value=" ".join(value.split()))


def lengthened(passage: str, words: int) -> str:
    """Return a passage of at least ``words`` words, with sentences without a value before and after its own."""
    missing = words - len(passage.split())
    before: list[str] = []
    after: list[str] = []
    sides: Sequence[list[str]] = (before, after)
    for number, sentence in enumerate(cycle(_FILLER)):
        if missing <= 0:
            break
        sides[number % 2].append(sentence)
        missing -= len(sentence.split())
    return " ".join([*before, passage, *after])
