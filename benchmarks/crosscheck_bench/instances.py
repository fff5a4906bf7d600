"""A sample under the prompting strategies that it can be asked under."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.base import Instance, Mark, Media
from benchmarks.crosscheck_bench import prompts
from benchmarks.crosscheck_bench.constants import CONDITIONS, MARKED, REASONED
from benchmarks.crosscheck_bench.sample import CrossCheckSample


def instances(sample: CrossCheckSample) -> Iterator[Instance]:
    """An instance for each strategy, in the order of the conditions; a sample without boxes only where none are drawn.

    Under "mm-cot" the frames hold all their marks: which of them are drawn is decided by the answer to stage 1. References:
    ``answer``, and ``options`` in their order.
    """
    for condition in CONDITIONS:
        if sample.boxes or condition not in MARKED:
            yield instance(sample, condition)


def instance(sample: CrossCheckSample, condition: str) -> Instance:
    """The sample under one of them."""
    frames = sample.frames
    if condition in MARKED:
        frames = tuple(_marked(frame, marks) for frame, marks in zip(frames, sample.boxes, strict=True))
    references = {"answer": (sample.answer,)} | ({"options": sample.options} if sample.options else {})
    return Instance(
        id=f"{sample.id}/{condition}",
        group=sample.id,
        condition=condition,
        question=sample.question,
        parts=prompts.parts(sample, frames, reasoned=condition in REASONED),
        references=references,
        strata=strata(sample),
    )


def _marked(frame: Media, boxes: Sequence[Mark]) -> Media:
    """``frame`` with its own marks, which are drawn under every strategy, and then those of ``boxes`` that it lacks."""
    own = {mark.box for mark in frame.marks}
    return replace(frame, marks=(*frame.marks, *(mark for mark in boxes if mark.box not in own)))


def _frame(frame: Media, size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}:{len(frame.marks)}"


def strata(sample: CrossCheckSample) -> dict[str, str]:
    """``task``, ``level``, ``form`` (option, yes/no or open), ``source``; ``conflict`` and ``product`` where they are known.

    Where there are boxes, ``frames`` are the frames' sizes, for reading the coordinates that a model names, each with how
    many marks are its own: ``640x480:0``.
    """
    found = {
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
    return {name: value for name, value in found.items() if value}
