"""Prompts: the unified format of Appendix C and its prompting strategies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.crosscheck_bench.crosscheck_constants import LETTERS
from benchmarks.crosscheck_bench.crosscheck_sample import IMAGE_PLACEHOLDER, OPTION_PLACEHOLDER, CrossCheckSample
from benchmarks.prompt_template import Prompts, PromptTemplate, join_parts
from benchmarks.protocols.protocols import ABSTENTION
from benchmarks.vocabulary import Media, Part, Text

PROMPT_SETS = {"paper": "the unified format and the strategies of Appendix C, as printed"}

INTRODUCTION = "Given the following input, answer the question."
"""The first line of the unified QA format (Appendix C)."""

STEP_BY_STEP = "Explain your reasoning step by step."
"""The sentence that chain-of-thought appends (Appendix C)."""

HIGHLIGHTED = "The regions that your reasoning refers to are highlighted with bounding boxes."
"""The first line of MM-CoT's stage 2 if anything is highlighted. Ours."""

NO_REASONING = "(no answer)"
"""The model's turn in stage 2 of MM-CoT if stage 1 gave an empty answer; engines refuse an empty turn. Ours."""

OPTIONS = "Option:"
"""The line before the options, which are written as ``A: ...`` (Figure 8)."""

GUESS = "Some of what the question is about is not shown. Give the answer that is most likely right."
"""The line before a question of which a source is left out. Ours."""

_TITLES = {
    "BR": [('Title: "', '" - Visual reference', "Visual reference")],
    "PMP": [(' Item description: "', '" Determine whether', " Determine whether")],
    "PMO": [(" The title of the product is: ", " and select the option", " and select the option")],
    "PD*": [(' Title: "', '" Does the image match', " Does the image match")],
    "SP": [(' for this "', " brand?", "?")],
    "SKU": [
        (
            f'{place} SKU: Title "',
            f'" with product image {IMAGE_PLACEHOLDER}{end}',
            f"{place} SKU: {IMAGE_PLACEHOLDER}{end}",
        )
        for place, end in (("First", " Second SKU:"), ("Second", ""))
    ],
    "BC*": [(" The selling list of the slice contains", " Reply to me", " Reply to me")],
    "BI": [("The product title is ", " The image is ", "The image is ")],
    "PI": [(" Its title is: ", " This is a normalized", " This is a normalized")],
}
"""The words before and after a title in Figure 8 and Appendix C, by task, and what stands there without the title."""


def without_titles(task: str, question: str) -> str:
    """Return a question without the titles, and in SP and BC* the brand and category, that the paper's wording puts into it.

    Titles that a question has in other words stay.
    """
    rest = question
    for start, end, instead in _TITLES.get(task, ()):
        before, opening, titled = rest.partition(start)
        # The last end: a title may hold the same words.
        _, closing, after = titled.rpartition(end)
        rest = f"{before}{instead}{after}" if opening and closing else rest
    placeholders = (IMAGE_PLACEHOLDER, OPTION_PLACEHOLDER)
    return rest if all(rest.count(name) == question.count(name) for name in placeholders) else question


def parts(
    prompt_set: Prompts, sample: CrossCheckSample, frames: Sequence[Media], *, reasoned: bool
) -> tuple[Part, ...]:
    """Return the introduction, the frames, the text, the question and its options, each on its own line.

    If the question holds ``<image>`` placeholders, the frames replace them; likewise ``<option>`` and the options, whose
    letters are then part of the question. ``reasoned`` appends the chain-of-thought instruction.
    """
    if isinstance(prompt_set, PromptTemplate):
        return _from_template(prompt_set, sample, frames, reasoned=reasoned)
    # Split at the pictures first: an option that reads "<image>" is text.
    first, *rest = _with_options(sample.question.split(IMAGE_PLACEHOLDER), sample.options)
    before = [sample.text] if sample.text.strip() else []
    after = [OPTIONS, *(f"{letter}: {option}" for letter, option in zip(LETTERS, sample.options, strict=False))]
    are_listed = bool(sample.options) and OPTION_PLACEHOLDER not in sample.question
    after = [*(after if are_listed else []), *([STEP_BY_STEP] if reasoned else [])]
    if rest:
        opening = Text("\n".join([INTRODUCTION, *before, first]))
        return tuple(_interleaved(opening, frames, rest, "".join(f"\n{line}" for line in after)))
    body = "".join(f"\n{line}" for line in (*before, *([first] if sample.question else []), *after))
    return (Text(f"{INTRODUCTION}\n"), *frames, Text(body))


def _from_template(
    template: PromptTemplate, sample: CrossCheckSample, frames: Sequence[Media], *, reasoned: bool
) -> tuple[Part, ...]:
    """Return the prompt of a set from a file; pictures that the question names by placeholders stand in ``{image}``."""
    (question,) = _with_options([number_frames(sample.question)], sample.options)
    listed = [f"{letter}: {option}" for letter, option in zip(LETTERS, sample.options, strict=False)]
    in_question = OPTION_PLACEHOLDER in sample.question
    parts = template.parts(
        {
            "question": (Text(question),) if question else (),
            "image": tuple(frames),
            "text": (Text(sample.text),) if sample.text.strip() else (),
            "options": (Text("\n".join([OPTIONS, *listed])),) if listed and not in_question else (),
            "abstention": (Text(ABSTENTION),),
        }
    )
    return join_parts([*parts, Text(f"\n{STEP_BY_STEP}")]) if reasoned else parts


def number_frames(question: str) -> str:
    """Return a question that names its pictures by number, where they do not stand in it."""
    first, *rest = question.split(IMAGE_PLACEHOLDER)
    return first + "".join(f"image {number}{words}" for number, words in enumerate(rest, 1))


def _with_options(pieces: Sequence[str], options: Sequence[str]) -> list[str]:
    """Return the pieces of a question with each option at its placeholder."""
    waiting = iter(options)
    filled = []
    for piece in pieces:
        first, *rest = piece.split(OPTION_PLACEHOLDER)
        filled.append(first + "".join(next(waiting, OPTION_PLACEHOLDER) + words for words in rest))
    return filled


def _interleaved(opening: Text, frames: Sequence[Media], rest: Sequence[str], end: str) -> Iterator[Part]:
    yield opening
    for number, (frame, words) in enumerate(zip(frames, rest, strict=True), 1):
        yield frame
        words += end if number == len(frames) else ""
        if words:
            yield Text(words)
