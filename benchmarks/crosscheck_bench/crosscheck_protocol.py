"""The prompting strategies as conversations: one turn, or two for MM-CoT."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.crosscheck_bench.crosscheck_grounding import Grounding, find_named_marks
from benchmarks.crosscheck_bench.crosscheck_prompts import HIGHLIGHTED, NO_REASONING
from benchmarks.protocols.protocols import Protocol
from benchmarks.vocabulary import Decoding, Generation, Instance, Mark, Media, Message, Part, Record, Request, Text


class StrategyProtocol(Protocol):
    """One question and one answer for every strategy except MM-CoT.

    MM-CoT (section "Prompting-Based Diagnostic Interventions") prompts twice. Stage 1 is chain-of-thought on the
    unmarked frames. Stage 2 continues the conversation: the model's own reasoning as its turn, then the whole input
    again with the boxes drawn that the reasoning names. If it names none, nothing is drawn, and stage 2 runs all the
    same. A failed stage 1 ends the instance.
    """

    name = "crosscheck-bench"

    def __init__(self, decoding: Decoding) -> None:
        self.decoding = decoding

    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        two_stages = instance.condition == "mm-cot"
        if len(generations) > two_stages or any(generation.finish_reason == "error" for generation in generations):
            return None
        messages: tuple[Message, ...] = (Message("user", _with_marks(instance, ()) if two_stages else instance.parts),)
        if generations:
            messages = (*messages, *_second_stage(instance, generations[0].text))
        return Request(
            instance.id,
            len(generations),
            messages,
            self.decoding,
            question=instance.question,
            references=instance.references,
        )


def _second_stage(instance: Instance, reasoning: str) -> tuple[Message, Message]:
    named = grounding(instance, reasoning)
    repeated_parts = _with_marks(instance, named.frames)
    if named.count:
        repeated_parts = (Text(f"{HIGHLIGHTED}\n"), *repeated_parts)
    turn = reasoning if reasoning.strip() else NO_REASONING
    return Message("assistant", (Text(turn),)), Message("user", repeated_parts)


def grounding(instance: Instance, reasoning: str) -> Grounding:
    """Return the marks of an instance that ``reasoning`` names."""
    frames = [part.marks for part in instance.parts if isinstance(part, Media)]
    return find_named_marks(reasoning, frames, [(width, height) for width, height, _ in _parse_frames(instance)])


def remarks(record: Record) -> tuple[str, ...]:
    """Return the boxes drawn for a record and, for MM-CoT, the coordinates of stage 1 that match no box."""
    if record.instance.condition != "mm-cot":
        marks = tuple(part.marks for part in record.instance.parts if isinstance(part, Media))
        return (f"drawn: {_describe_marks(marks)}",) if any(marks) else ()
    if not record.generations or record.generations[0].finish_reason == "error":
        return ()
    named = grounding(record.instance, record.generations[0].text)
    remark = f"drawn for stage 2: {_describe_marks(named.frames)}" if named.count else "nothing was drawn for stage 2"
    if not named.unmatched:
        return (remark,)
    return remark, f"named in stage 1 and no box of this sample: {', '.join(named.unmatched)}"


def _describe_marks(frames: Sequence[tuple[Mark, ...]]) -> str:
    return ", ".join(f"{mark.label} (frame {i})" for i, marks in enumerate(frames, 1) for mark in marks)


def _with_marks(instance: Instance, named: Sequence[tuple[Mark, ...]]) -> tuple[Part, ...]:
    """Return the instance's parts, keeping on each frame only its own marks and those in ``named``."""
    mark_counts = iter([count for *_, count in _parse_frames(instance)])
    chosen_marks = iter(named)

    def marked(frame: Media) -> Media:
        first, also = next(mark_counts, 0), next(chosen_marks, ())
        return replace(frame, marks=tuple(m for i, m in enumerate(frame.marks) if i < first or m in also))

    return tuple(marked(part) if isinstance(part, Media) else part for part in instance.parts)


def _parse_frames(instance: Instance) -> list[tuple[int, int, int]]:
    """Return the width, the height and the number of its own marks of each frame, as :func:`instances.strata` stores them."""
    matches = [re.fullmatch(r"(\d+)x(\d+):(\d+)", match) for match in instance.strata.get("frames", "").split()]
    return [(int(match[1]), int(match[2]), int(match[3])) for match in matches if match]
