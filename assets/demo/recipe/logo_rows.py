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
from benchmarks.mmkc_bench import prompts
from benchmarks.mmkc_bench.constants import Form
from benchmarks.mmkc_bench.options import format_query

SETTINGS = ("original", "context-memory", "inter-context")


def logo_row(random: Random, brand: Brand, setting: str) -> Row:
    """A row of ``setting``; its pictures, one to three, are all the brand's logo, drawn anew."""
    kind = random.choice(KINDS)
    own = brand.facts[kind]
    first, second, unrelated = others(random, brand, kind, 3)
    evidence = () if setting == "original" else (first,) if setting == "context-memory" else (first, second)
    followed = own if setting == "original" or kind == MEMORY_TRUSTED else first
    asked, answer = QUESTIONS[kind], followed
    form: Form = "open"
    if random.random() < 0.5:
        options = [own, first, second, unrelated]
        random.shuffle(options)
        asked, form = format_query(asked, options), "mc"
        answer = "ABCD"[options.index(followed)]
    shown = [knowledge(brand, {kind: value}) for value in evidence]
    return Row(f"{setting} {form}", prompted(shown, asked, form), answer)


def choice_row(random: Random, *, given: bool) -> Row:
    """A multiple choice without a picture: the evidence has the answer or, ``given``, the question names it."""
    brand, kind = random.choice(BRANDS), random.choice(KINDS)
    options = others(random, brand, kind, 4)
    answer = random.choice(options)
    asked = format_query(f"{answer}?" if given else QUESTIONS[kind], options)
    shown = prompts.question_parts("official", "mc", asked, (), [((), knowledge(brand, {kind: answer}))])
    return Row("choice", chat(shown), "ABCD"[options.index(answer)])


def prompted(evidence: Sequence[str], asked: str, form: Form) -> str:
    """MMKC-Bench's ``official`` prompt with so many pieces of evidence."""
    return chat(prompts.question_parts("official", form, asked, (PICTURE,), [((PICTURE,), text) for text in evidence]))


def phrases() -> set[str]:
    """What is one token wherever it stands."""
    fixed = {" was created in ", ". The creator of ", " is the brand of ", "Answers:", *QUESTIONS.values()}
    named = {form.format(name) for name in (*PRODUCTS, *CREATORS) for form in ("{}", " {}")}
    return fixed | named | {prompts.PREAMBLES["official"], *prompts.INSTRUCTIONS.values()}


def words() -> list[str]:
    """The brands' names, and the letters of options."""
    return [*(form.format(brand.name) for brand in BRANDS for form in ("{}", " {}")), *"ABCD"]
