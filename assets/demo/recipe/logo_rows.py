"""Rows about logos: MMKC-Bench's settings, with one to three pictures."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from assets.demo.recipe.chat import PICTURE, Row, chat
from assets.demo.recipe.logos import (
    BRANDS,
    CREATORS,
    KINDS,
    MEMORY_TRUSTED,
    PRODUCTS,
    QUESTIONS,
    Brand,
    knowledge,
    others,
)
from benchmarks.mmkc_bench import mmkc_prompts
from benchmarks.mmkc_bench.mmkc_constants import Form
from benchmarks.mmkc_bench.mmkc_options import format_query

SETTINGS = ("original", "context-memory", "inter-context")


def logo_row(random: Random, brand: Brand, setting: str) -> Row:
    """Return a row of ``setting``; its pictures, one to three, are all the brand's logo, drawn anew."""
    kind = random.choice(KINDS)
    own = brand.facts[kind]
    first, second, unrelated = others(random, brand, kind, 3)
    evidence = () if setting == "original" else (first,) if setting == "context-memory" else (first, second)
    followed = own if setting == "original" or kind == MEMORY_TRUSTED else first
    query, answer = QUESTIONS[kind], followed
    form: Form = "open"
    if random.random() < 0.5:
        options = [own, first, second, unrelated]
        random.shuffle(options)
        query, form = format_query(query, options), "mc"
        answer = "ABCD"[options.index(followed)]
    texts = [knowledge(brand, {kind: value}) for value in evidence]
    return Row(f"{setting} {form}", prompted(texts, query, form), answer)


def choice_row(random: Random, *, answer_in_question: bool) -> Row:
    """Return a multiple choice without a picture; the evidence has the answer, or the question with ``answer_in_question``."""
    brand, kind = random.choice(BRANDS), random.choice(KINDS)
    options = others(random, brand, kind, 4)
    answer = random.choice(options)
    query = format_query(f"{answer}?" if answer_in_question else QUESTIONS[kind], options)
    shown = mmkc_prompts.question_parts("official", "mc", query, (), [((), knowledge(brand, {kind: answer}))])
    return Row("choice", chat(shown), "ABCD"[options.index(answer)])


def prompted(evidence: Sequence[str], query: str, form: Form) -> str:
    """Return MMKC-Bench's ``official`` prompt with these pieces of evidence."""
    return chat(
        mmkc_prompts.question_parts("official", form, query, (PICTURE,), [((PICTURE,), text) for text in evidence])
    )


def phrases() -> set[str]:
    """Return the phrases that are one token everywhere."""
    fixed = {" was created in ", ". The creator of ", " is the brand of ", "Answers:", *QUESTIONS.values()}
    named = {form.format(name) for name in (*PRODUCTS, *CREATORS) for form in ("{}", " {}")}
    return fixed | named | {mmkc_prompts.PREAMBLES["official"], *mmkc_prompts.INSTRUCTIONS.values()}


def words() -> list[str]:
    """Return the brands' names, and the letters of options."""
    return [*(form.format(brand.name) for brand in BRANDS for form in ("{}", " {}")), *"ABCD"]
