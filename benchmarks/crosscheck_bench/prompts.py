"""What a model is asked: the unified format of Appendix C and its prompting strategies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.base import Media, Part, Text
from benchmarks.crosscheck_bench.constants import LETTERS
from benchmarks.crosscheck_bench.sample import PLACE, CrossCheckSample

PROMPT_SETS = {"paper": "the unified format and the strategies of Appendix C, as printed"}

INTRODUCTION = "Given the following input, answer the question."
"""Appendix C, unified QA format."""

STEP_BY_STEP = "Explain your reasoning step by step."
"""Appendix C: what chain-of-thought appends."""

HIGHLIGHTED = "The regions that your reasoning refers to are highlighted with bounding boxes."
"""Ours: how stage 2 of MM-CoT begins where something is highlighted."""

NO_REASONING = "(no answer)"
"""Ours: the model's turn in stage 2 of MM-CoT where stage 1 gave an empty answer; engines refuse an empty turn."""

OPTIONS = "Option:"
"""Figure 8: the line before the options, which stand as ``A: ...``."""


def parts(sample: CrossCheckSample, frames: Sequence[Media], *, reasoned: bool) -> tuple[Part, ...]:
    """The introduction, the frames, the text, the question and its options, each on its own line.

    Where the question says with ``<image>`` where the frames stand, they stand there. ``reasoned`` appends chain-of-thought's
    instruction.
    """
    inline = PLACE in sample.question
    before = [sample.text] if sample.text.strip() else []
    after = [OPTIONS, *(f"{letter}: {option}" for letter, option in zip(LETTERS, sample.options, strict=False))]
    after = [*(after if sample.options else []), *([STEP_BY_STEP] if reasoned else [])]
    if inline:
        first, *rest = sample.question.split(PLACE)
        begins = Text("\n".join([INTRODUCTION, *before, first]))
        return tuple(_interleaved(begins, frames, rest, "".join(f"\n{line}" for line in after)))
    asked = "".join(f"\n{line}" for line in (*before, sample.question, *after))
    return (Text(f"{INTRODUCTION}\n"), *frames, Text(asked))


def _interleaved(begins: Text, frames: Sequence[Media], rest: Sequence[str], end: str) -> Iterator[Part]:
    yield begins
    for number, (frame, words) in enumerate(zip(frames, rest, strict=True), 1):
        yield frame
        words += end if number == len(frames) else ""
        if words:
            yield Text(words)
