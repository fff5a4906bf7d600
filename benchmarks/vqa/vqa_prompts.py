"""Prompts of OK-VQA, GQA and POPE: the image, then the question, as in LLaVA-1.5's own evaluation."""

from __future__ import annotations

from benchmarks.prompt_template import Prompts, PromptTemplate
from benchmarks.protocols.protocols import ABSTENTION
from benchmarks.vocabulary import Media, Part, Text

PLAIN = {"plain": "the question as it is published"}
SHORT = {"short": "the question with LLaVA-1.5's request for a single word or phrase"}
"""The prompt sets; a benchmark's first is its default."""

_SHORT = "\nAnswer the question using a single word or phrase."


def parts(question: str, image: tuple[Media, ...], prompt_set: Prompts) -> tuple[Part, ...]:
    """Return the image, if it is shown, then the question."""
    if isinstance(prompt_set, PromptTemplate):
        return prompt_set.parts({"question": (Text(question),), "image": image, "abstention": (Text(ABSTENTION),)})
    return (*image, Text(question + _SHORT if prompt_set == "short" else question))
