"""A language model by rule that writes, answers and chooses as Contra4's construction asks: it knows which caption is longest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.contra4.contra4_constants import LETTERS

_SCENE = re.compile(r'^Scene ([A-D])\. "(.*)"$', re.MULTILINE)


def scenes_of(text: str) -> list[str]:
    """Return the last captions of a prompt in order."""
    captions: list[str] = []
    for letter, caption in _SCENE.findall(text):
        captions = [caption] if letter == "A" else [*captions, caption]
    return captions


def longest(captions: Sequence[str]) -> str:
    """The letter of the longest caption: the rule that the scripted models know."""
    return LETTERS[max(range(len(captions)), key=lambda i: (len(captions[i]), captions[i]))]


def writes(text: str) -> str:
    """The reply to one of the construction's four prompts."""
    if text.endswith("Category:"):
        return " Time Perception\n\nReasoning: The question asks how long it takes."
    if text.endswith("Generated Question:"):
        return " Which scene takes longer to tell?\n\nScene A."
    if text.startswith("Select"):
        return f"Scene {longest(scenes_of(text))}"
    letter = longest(scenes_of(text))
    return f" Scene {letter}. Scene {letter} is told at length, unlike Scene A."
