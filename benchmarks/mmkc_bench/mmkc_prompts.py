"""Prompts: the message lists of the published code. The paper prints none of them."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.mmkc_bench.mmkc_constants import Form
from benchmarks.prompt_template import Prompts, PromptTemplate
from benchmarks.protocols.protocols import ABSTENTION
from benchmarks.vocabulary import Media, Part, Text

PROMPT_SETS = {
    "official": "the message lists of the published code for open models",
    "official-gpt": "those of its scripts for GPT: another preamble, and the instruction before the question",
}

PREAMBLES = {
    "official": "The following information is provided externally:",
    "official-gpt": "Here are the external images and information:",
}
INSTRUCTIONS: dict[Form, str] = {
    "mc": "Answer with the option's letter from the given choices directly based on the context and the image.",
    "open": "Answer the question using a single word or phrase based on the context and the image.",
}
_CLOSED: dict[Form, str] = {
    "mc": "Answer with the option's letter from the given choices directly.",
    "open": "Answer the question using a single word or phrase.",
}
"""The instructions without the words on context and image. Ours."""

DETECTION_INSTRUCTION = (
    "Read the following document carefully and answer No if it does not agree with what you remember, "
    "and Yes if it does."
)


def question_parts(
    prompt_set: Prompts, form: Form, query: str, image: Sequence[Media], evidence: Sequence[tuple[Sequence[Media], str]]
) -> tuple[Part, ...]:
    """Return a question about ``image`` after ``evidence``, pairs of image and text; without evidence, no preamble.

    An image is given as a sequence, which is empty if an example is read without its images.
    """
    if isinstance(prompt_set, PromptTemplate):
        texts: list[Part] = []
        for picture, text in evidence:
            texts += [*picture, Text(text), Text("\n")]
        asked = Text(f"{query}\n{INSTRUCTIONS[form]}")
        return prompt_set.parts(
            {"question": (asked,), "image": tuple(image), "text": texts[:-1], "abstention": (Text(ABSTENTION),)}
        )
    instruction = Text(INSTRUCTIONS[form])
    gpt = prompt_set == "official-gpt"
    ending: tuple[Part, ...] = (instruction, Text(query)) if gpt else (Text(query), instruction)
    context: list[Part] = [Text(PREAMBLES[prompt_set])] if evidence else []
    for picture, text in evidence:
        context += [*picture, Text(text)]
    return (*context, *ending, *image)


def closed_parts(prompt_set: Prompts, form: Form, query: str) -> tuple[Part, ...]:
    """Return a question, or its options, without any source. Ours."""
    if isinstance(prompt_set, PromptTemplate):
        question = (Text(f"{query}\n{_CLOSED[form]}"),)
        return prompt_set.parts({"question": question, "abstention": (Text(ABSTENTION),)})
    lines = (query.strip(), _CLOSED[form])
    return (Text("\n".join(lines[::-1] if prompt_set == "official-gpt" else lines)),)


def detection_parts(prompt_set: Prompts, image: Sequence[Media], text: str) -> tuple[Part, ...]:
    """Return the question whether a document agrees with what the model remembers.

    The GPT scripts' own wording is unknown.
    """
    if isinstance(prompt_set, PromptTemplate):
        question = (Text(DETECTION_INSTRUCTION),)
        # To name the conflict is to answer No.
        return prompt_set.parts(
            {"question": question, "image": tuple(image), "text": (Text(text),), "abstention": (Text("No"),)}
        )
    return (Text(DETECTION_INSTRUCTION), Text(PREAMBLES["official"]), *image, Text(text))
