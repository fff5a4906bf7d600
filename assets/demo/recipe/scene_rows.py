"""Rows about scenes: CLASH's own prompts, on conflicting and on original captions, multiple choice and open."""

from __future__ import annotations

import re
from random import Random
from typing import Literal

from assets.demo.recipe.chat import PICTURE, Row, chat
from assets.demo.recipe.scenes import COLOURS, RELATIONS, SHAPES, Sample, Scene, question, sample, training_scene
from benchmarks.clash import clash_prompts
from benchmarks.clash.clash_constants import CONFLICT_OPTION
from benchmarks.cmc_bench.cmc_prompts import parts as plain_parts

_CHANGES: tuple[Literal["object", "attribute"], ...] = ("object", "attribute")


def scene_row(random: Random, scene: Scene, kind: str) -> Row:
    """Return a row about a scene.

    plain: the picture and the question alone, in CMC-Bench's words. original, conflicting: CLASH's prompt with that
    caption, multiple choice or open.
    """
    index, change = random.randrange(2), random.choice(_CHANGES)
    if kind == "plain":
        thing = scene.things[index]
        prompt = chat(plain_parts("paper", question(change, thing), PICTURE, None))
        return Row(kind, prompt, thing[0 if change == "attribute" else 1].capitalize())
    clash_sample = sample(random, scene, index, change)
    caption = clash_sample.original_caption if kind == "original" else clash_sample.conflicting_caption
    followed = clash_sample.image_only if kind == "original" else clash_sample.followed
    if random.random() < 0.4:
        return Row(f"{kind} open", prompted("open", caption, clash_sample, ()), followed or CONFLICT_OPTION)
    options = [clash_sample.image_only, clash_sample.text_only, clash_sample.distractor, CONFLICT_OPTION]
    random.shuffle(options)
    letter = "ABCD"[options.index(followed or CONFLICT_OPTION)]
    return Row(f"{kind} mc", prompted("mc", caption, clash_sample, tuple(options)), f"({letter})")


def choice_row(random: Random, *, answer_in_question: bool) -> Row:
    """Return a multiple choice without a picture; the caption has the answer, or the question with ``answer_in_question``."""
    clash_sample = sample(random, training_scene(random), random.randrange(2), random.choice(_CHANGES))
    options = [clash_sample.image_only, clash_sample.text_only, clash_sample.distractor, CONFLICT_OPTION]
    random.shuffle(options)
    answer = random.choice(options) if answer_in_question else clash_sample.image_only
    question = f"{answer}?" if answer_in_question else clash_sample.question
    text = clash_prompts.prompt("official", "mc", clash_sample.original_caption, question, options)
    return Row("choice", chat(clash_prompts.parts(None, text)), f"({'ABCD'[options.index(answer)]})")


def prompted(task: Literal["mc", "open"], caption: str, clash_sample: Sample, options: tuple[str, ...]) -> str:
    """Return CLASH's ``official`` prompt."""
    text = clash_prompts.prompt("official", task, caption, clash_sample.question, options)
    return chat(clash_prompts.parts(PICTURE, text))


def phrases() -> set[str]:
    """Return the fixed sentences of the prompts."""
    words = "|".join((*COLOURS, *SHAPES))
    sentences = {
        CONFLICT_OPTION,
        f" {CONFLICT_OPTION}",
        clash_prompts.instruction("official", "open"),
        clash_prompts.instruction("official", "mc"),
    }
    for thing in (("red", "star"), ("red", "circle")):
        for change in _CHANGES:
            text = question(change, thing)
            plain = chat(plain_parts("paper", text, PICTURE, None))
            sentences.update(re.split(rf" (?:{words})|<\|\w+\|>", text + plain))
    sentences.update(f" {relation} a" for relation in RELATIONS)
    return {phrase for phrase in sentences if len(phrase) > 1}


def words() -> list[str]:
    """Return the words of captions, questions and answers."""
    values = [*COLOURS, *SHAPES]
    answers = [form.format(word.capitalize()) for word in values for form in ("{}", " {}")]
    return [*(f" {word}" for word in values), *answers, *(f"({letter})" for letter in "ABCD")]
