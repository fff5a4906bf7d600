"""The prompts by prompt set: the instructions of Appendix B.3, and those of the official code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.clash.constants import LETTERS, Task
from benchmarks.vocabulary import Media, Part, Text

PROMPT_SETS = {
    "official": "the instructions of the official code, with which the published predictions were made",
    "paper": "the instructions of Appendix B.3, as printed",
}

_FIRST_LINE = "You are given an image and a textual description of the image.\n"

_INSTRUCTIONS: Mapping[str, Mapping[Task, str]] = {
    "official": {
        "open": (
            _FIRST_LINE
            + "Use *both* the visual and textual information to answer the question below as accurately as possible.\n"
            "Only answer if your response can be clearly supported by both sources.\n"
            "If the image and the description contradict each other, or if one is missing key information,\n"
            'output "Conflicting information \N{EN DASH} cannot answer". '
            "Otherwise, provide the answer (less than 15 words). "
        ),
        "mc": (
            _FIRST_LINE
            + "Use *both* the visual and textual information to answer the multiple choice question below as accurately as "
            "possible.\n"
            "Choose the option that is best supported by *both* sources.\n"
            "If the image and the description contradict each other, or if one is missing key information, select the option "
            "\N{LEFT DOUBLE QUOTATION MARK}Conflicting information \N{EN DASH} cannot answer."
            "\N{RIGHT DOUBLE QUOTATION MARK}\n"
            "Answer only with the letter corresponding to your choice in parenthesis: (A), (B), (C) or (D).\n"
            "Do not include any other text."
        ),
    },
    "paper": {
        "open": (
            "You are given an image and a textual description of the image. "
            "Use both the visual and textual information to answer the question below as accurately as possible. "
            "Only answer if your response can be clearly supported by both sources. "
            "If the image and the description contradict each other, or if one is missing key information, output "
            "\N{LEFT DOUBLE QUOTATION MARK}Conflicting information \N{EN DASH} cannot answer"
            "\N{RIGHT DOUBLE QUOTATION MARK}. "
            "Otherwise, provide the answer (less than 15 words)."
        ),
        "mc": (
            "You are given an image and a textual description of the image. "
            "Use both the visual and textual information to answer the multiple-choice question below as accurately as "
            "possible. "
            "Choose the option that is best supported by both sources. "
            "If the image and the description contradict each other, or if one is missing key information, select the option "
            "\N{LEFT DOUBLE QUOTATION MARK}Conflicting information \N{EN DASH} cannot answer."
            "\N{RIGHT DOUBLE QUOTATION MARK} "
            "Answer only with the letter corresponding to your choice in parentheses: (A), (B), (C), or (D). "
            "Do not include any other text."
        ),
    },
}


def instruction(prompt_set: str, task: Task) -> str:
    """Return the instruction without caption and question."""
    return _INSTRUCTIONS[prompt_set][task]


def prompt(prompt_set: str, task: Task, caption: str, question: str, choices: Sequence[str] = ()) -> str:
    """Return instruction, caption, question and one line ``(A) text`` per option, each on its own line.

    The official code joins them so; the paper does not print how they are joined.
    """
    lines = [f"({letter}) {text}" for letter, text in zip(LETTERS, choices, strict=False)]
    return "\n".join([instruction(prompt_set, task), caption, question, *lines])


def parts(image: Media | None, text: str) -> tuple[Part, ...]:
    """Return the image, then the text (our choice: neither the paper nor the official prompt gives the order)."""
    return (Text(text),) if image is None else (image, Text(text))
