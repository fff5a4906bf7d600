"""The instances of a sample, one for each prompting strategy that applies to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.crosscheck_bench import crosscheck_prompts as prompts
from benchmarks.crosscheck_bench.crosscheck_constants import CONDITIONS, MARKED_CONDITIONS, REASONING_CONDITIONS
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample
from benchmarks.prompt_template import Prompts, join_parts
from benchmarks.protocols.without_sources import without_sources
from benchmarks.vocabulary import Instance, Mark, Media

_PICTURE_NUMBER = re.compile(r"No\. \d+")
"""An option of Figure 8's SPU."""


def instances(sample: CrossCheckSample, prompt_set: Prompts = "paper") -> Iterator[Instance]:
    """Yield an instance for each strategy, in the order of the conditions; strategies that draw boxes need a sample with boxes.

    Under "mm-cot" the frames hold all their marks; the answer to stage 1 decides which of them are drawn. The
    references are ``answer``, and ``options`` in their order.
    """
    for condition in CONDITIONS:
        if sample.boxes or condition not in MARKED_CONDITIONS:
            yield instance(sample, condition, prompt_set)


def all_instances(sample: CrossCheckSample, prompt_set: Prompts = "paper") -> Iterator[Instance]:
    """Yield the sample's instances, and then those that leave out its pictures, its text or its question.

    Its text includes the titles that Figure 8's wording puts into a question. A single source is shown alone where the
    sample has both; without its pictures, a question names them by number. Options that only number the pictures are not
    shown alone.
    """
    yield from instances(sample, prompt_set)
    full = instance(sample, "vanilla", prompt_set)
    untitled = prompts.without_titles(sample.task, sample.question)
    without_frames = replace(sample, question=prompts.number_frames(sample.question), frames=())
    without_text = replace(sample, question=untitled, text="")
    shown = {"closed-book": replace(without_frames, question=prompts.number_frames(untitled), text="")}
    if sample.frames and (sample.text.strip() or untitled != sample.question):
        shown |= {"text-only": without_frames, "image-only": without_text}
    if not all(map(_PICTURE_NUMBER.fullmatch, sample.options)):
        shown["options-only"] = replace(without_frames, question="", text="")
    for condition, rest in shown.items():
        rest = replace(rest, question=f"{prompts.GUESS} {rest.question}".rstrip())
        parts = join_parts(prompts.parts(prompt_set, rest, rest.frames, reasoned=False))
        yield without_sources(full, condition, parts)


def instance(sample: CrossCheckSample, condition: str, prompt_set: Prompts) -> Instance:
    """Return the sample's instance under one strategy."""
    frames = sample.frames
    if condition in MARKED_CONDITIONS:
        frames = tuple(_marked(frame, marks) for frame, marks in zip(frames, sample.boxes, strict=True))
    references = {"answer": (sample.answer,)} | ({"options": sample.options} if sample.options else {})
    return Instance(
        id=f"{sample.id}/{condition}",
        group=sample.id,
        condition=condition,
        question=sample.question,
        parts=prompts.parts(prompt_set, sample, frames, reasoned=condition in REASONING_CONDITIONS),
        references=references,
        strata=strata(sample),
    )


def _marked(frame: Media, boxes: Sequence[Mark]) -> Media:
    """Return ``frame`` with its own marks, which every strategy draws, followed by those of ``boxes`` that it lacks."""
    frame_boxes = {mark.box for mark in frame.marks}
    return replace(frame, marks=(*frame.marks, *(mark for mark in boxes if mark.box not in frame_boxes)))


def _frame(frame: Media, size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}:{len(frame.marks)}"


def strata(sample: CrossCheckSample) -> dict[str, str]:
    """Return ``task``, ``level``, ``form`` (option, yes/no or open), ``source``, and ``conflict`` and ``product`` if known.

    If the sample has boxes, ``frames`` holds each frame's size, needed to read the coordinates that a model names, and
    the number of its own marks: ``640x480:0``.
    """
    values = {
        "task": sample.task,
        "level": sample.level,
        "form": "option" if sample.options else "yes/no" if sample.closed else "open",
        "source": sample.source,
        "conflict": sample.conflict_type,
        "product": sample.product,
        "frames": " ".join(_frame(frame, size) for frame, size in zip(sample.frames, sample.sizes, strict=False))
        if sample.boxes
        else "",
    }
    return {name: value for name, value in values.items() if value}
