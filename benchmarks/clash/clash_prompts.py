"""The prompts by prompt set: the instructions of Appendix B.3, and those of the official code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.clash.clash_constants import CONFLICT_OPTION, LETTERS, Task
from benchmarks.prompt_template import Prompts, PromptTemplate
from benchmarks.vocabulary import Media, Part, Text

PROMPT_SETS = {
    "official": "the instructions of the official code, with which the published predictions were made",
    "paper": "the instructions of Appendix B.3, as printed",
}

_LETTER_ONLY = "Answer only with the letter of your choice in parentheses."
"""The form of the answer to a multiple choice in a prompt set from a file. Ours."""

_PARTIAL = {
    (True, True): "Answer the multiple choice question below as accurately as possible. ",
    (False, True): "Choose the option that is most likely right. ",
    (True, False): "Answer the question below as accurately as possible, in less than 15 words.",
}
"""The instructions without a source or the question, by whether there is a question and choices. Ours."""

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


def parts(
    prompt_set: Prompts, image: Media | None, caption: str, question: str, choices: Sequence[str]
) -> tuple[Part, ...]:
    """Return the image, then the text (our choice: neither the paper nor the official prompt gives the order).

    With ``choices`` the question is a multiple choice.
    """
    if isinstance(prompt_set, PromptTemplate):
        lines = [f"({letter}) {text}" for letter, text in zip(LETTERS, choices, strict=False)]
        options = "\n".join([*lines, _LETTER_ONLY])
        return prompt_set.parts(
            {
                "question": (Text(question),) if question else (),
                "image": () if image is None else (image,),
                "text": (Text(caption),) if caption else (),
                "options": (Text(options),) if choices else (),
                "abstention": (Text(CONFLICT_OPTION.rstrip(".")),),
            }
        )
    text = Text(prompt(prompt_set, "mc" if choices else "open", caption, question, choices))
    return (text,) if image is None else (image, text)


def partial_parts(
    prompt_set: Prompts, image: Media | None, caption: str, question: str, choices: Sequence[str]
) -> tuple[Part, ...]:
    """Return a prompt that shows at most one of image and caption, or no question; what is empty is not mentioned. Ours."""
    if isinstance(prompt_set, PromptTemplate):
        return parts(prompt_set, image, caption, question, choices)
    source = "an image" if image else "a textual description of an image" if caption else ""
    first_line = f"You are given {source}.\n" if source else ""
    instruction = first_line + _PARTIAL[bool(question), bool(choices)] + (_LETTER_ONLY if choices else "")
    lines = [f"({letter}) {text}" for letter, text in zip(LETTERS, choices, strict=False)]
    text = Text("\n".join(filter(None, [instruction, caption, question, *lines])))
    return (text,) if image is None else (image, text)
