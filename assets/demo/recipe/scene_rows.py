"""Rows about scenes: CLASH's own prompts, on conflicting and on original captions, multiple choice and open."""

from __future__ import annotations

import re
from random import Random
from typing import Literal

from assets.demo.recipe.chat import PICTURE, Row, chat
from assets.demo.recipe.scenes import COLOURS, RELATIONS, SHAPES, Sample, Scene, question, sample, training_scene
from benchmarks.clash import prompts
from benchmarks.clash.constants import CONFLICT_OPTION
from benchmarks.cmc_bench.prompts import parts as plain_parts

_TASKS: tuple[Literal["mc", "open"], ...] = ("mc", "open")
_CHANGES: tuple[Literal["object", "attribute"], ...] = ("object", "attribute")


def scene_row(random: Random, scene: Scene, kind: str) -> Row:
    """A row about a scene.

    plain: the picture and the question alone, in CMC-Bench's words. original, conflicting: CLASH's prompt with that
    caption, multiple choice or open.
    """
    which, change = random.randrange(2), random.choice(_CHANGES)
    if kind == "plain":
        thing = scene.things[which]
        prompt = chat(plain_parts("paper", question(change, thing), PICTURE, None))
        return Row(kind, prompt, thing[0 if change == "attribute" else 1].capitalize())
    made = sample(random, scene, which, change)
    caption = made.original_caption if kind == "original" else made.conflicting_caption
    followed = made.image_only if kind == "original" else made.followed
    if random.random() < 0.4:
        return Row(f"{kind} open", prompted("open", caption, made, ()), followed or CONFLICT_OPTION)
    options = [made.image_only, made.text_only, made.distractor, CONFLICT_OPTION]
    random.shuffle(options)
    letter = "ABCD"[options.index(followed or CONFLICT_OPTION)]
    return Row(f"{kind} mc", prompted("mc", caption, made, tuple(options)), f"({letter})")


def choice_row(random: Random, *, given: bool) -> Row:
    """A multiple choice without a picture: the caption has the answer or, ``given``, the question names it."""
    made = sample(random, training_scene(random), random.randrange(2), random.choice(_CHANGES))
    options = [made.image_only, made.text_only, made.distractor, CONFLICT_OPTION]
    random.shuffle(options)
    answer = random.choice(options) if given else made.image_only
    question = f"{answer}?" if given else made.question
    text = prompts.prompt("official", "mc", made.original_caption, question, options)
    return Row("choice", chat(prompts.parts(None, text)), f"({'ABCD'[options.index(answer)]})")


def prompted(task: Literal["mc", "open"], caption: str, made: Sample, options: tuple[str, ...]) -> str:
    """CLASH's ``official`` prompt."""
    text = prompts.prompt("official", task, caption, made.question, options)
    return chat(prompts.parts(PICTURE, text))


def phrases() -> set[str]:
    """The sentences around what differs from prompt to prompt."""
    words = "|".join((*COLOURS, *SHAPES))
    found = {
        CONFLICT_OPTION,
        f" {CONFLICT_OPTION}",
        prompts.instruction("official", "open"),
        prompts.instruction("official", "mc"),
    }
    for thing in (("red", "star"), ("red", "circle")):
        for change in _CHANGES:
            asked = question(change, thing)
            plain = chat(plain_parts("paper", asked, PICTURE, None))
            found.update(re.split(rf" (?:{words})|<\|\w+\|>", asked + plain))
    found.update(f" {relation} a" for relation in RELATIONS)
    return {phrase for phrase in found if len(phrase) > 1}


def words() -> list[str]:
    """The words of captions, questions and answers."""
    found = [*COLOURS, *SHAPES]
    answers = [form.format(word.capitalize()) for word in found for form in ("{}", " {}")]
    return [*(f" {word}" for word in found), *answers, *(f"({letter})" for letter in "ABCD")]
