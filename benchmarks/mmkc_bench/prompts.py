"""What a model is asked: the message lists of the published code. The paper prints none of them."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.base import Media, Part, Text
from benchmarks.mmkc_bench.constants import Form

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
DETECTION = "Read the following document carefully and answer No if it does not agree with what you remember, and Yes if it does."


def question(
    prompt_set: str, form: Form, asked: str, image: Sequence[Media], evidence: Sequence[tuple[Sequence[Media], str]]
) -> tuple[Part, ...]:
    """A question about ``image`` after ``evidence``, pairs of image and text; no preamble where there is none.

    An image is given as a sequence, which is empty where an example is read without its images.
    """
    instruction = Text(INSTRUCTIONS[form])
    gpt = prompt_set == "official-gpt"
    ending: tuple[Part, ...] = (instruction, Text(asked)) if gpt else (Text(asked), instruction)
    shown: list[Part] = [Text(PREAMBLES[prompt_set])] if evidence else []
    for picture, text in evidence:
        shown += [*picture, Text(text)]
    return (*shown, *ending, *image)


def detection(image: Sequence[Media], text: str) -> tuple[Part, ...]:
    """Whether a document agrees with what the model remembers; the GPT scripts' own wording of it is not known."""
    return (Text(DETECTION), Text(PREAMBLES["official"]), *image, Text(text))
