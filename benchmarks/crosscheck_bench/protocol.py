"""The prompting strategies as conversations: one turn, and for MM-CoT two."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.base import Decoding, Generation, Instance, Mark, Media, Message, Part, Protocol, Record, Request, Text
from benchmarks.crosscheck_bench.grounding import Grounding, ground
from benchmarks.crosscheck_bench.prompts import HIGHLIGHTED, NO_REASONING


class StrategyProtocol(Protocol):
    """Every strategy is one question and one answer, except MM-CoT.

    MM-CoT (section "Prompting-Based Diagnostic Interventions") asks twice. Stage 1 is chain-of-thought on the frames as they
    are. Stage 2 goes on from it: the model's own reasoning as its turn, then the whole input again with the boxes drawn that
    the reasoning names. Where it names none, nothing is drawn and stage 2 is asked all the same. A stage 1 that failed ends
    the instance.
    """

    name = "crosscheck-bench"

    def __init__(self, decoding: Decoding) -> None:
        self.decoding = decoding

    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        twice = instance.condition == "mm-cot"
        if len(generations) > twice or any(one.finish_reason == "error" for one in generations):
            return None
        messages: tuple[Message, ...] = (Message("user", _drawn(instance, ()) if twice else instance.parts),)
        if generations:
            messages = (*messages, *_second_stage(instance, generations[0].text))
        return Request(instance.id, len(generations), messages, self.decoding, references=instance.references)


def _second_stage(instance: Instance, reasoning: str) -> tuple[Message, Message]:
    found = grounding(instance, reasoning)
    again = _drawn(instance, found.frames)
    if found.drawn:
        again = (Text(f"{HIGHLIGHTED}\n"), *again)
    said = reasoning if reasoning.strip() else NO_REASONING
    return Message("assistant", (Text(said),)), Message("user", again)


def grounding(instance: Instance, reasoning: str) -> Grounding:
    """What of an instance's marks ``reasoning`` names."""
    frames = [part.marks for part in instance.parts if isinstance(part, Media)]
    return ground(reasoning, frames, [(width, height) for width, height, _ in _frames(instance)])


def remarks(record: Record) -> tuple[str, ...]:
    """Which boxes were drawn for a record, and for MM-CoT which coordinates of stage 1 could not be matched."""
    if record.instance.condition != "mm-cot":
        marks = tuple(part.marks for part in record.instance.parts if isinstance(part, Media))
        return (f"drawn: {_named(marks)}",) if any(marks) else ()
    if not record.generations or record.generations[0].finish_reason == "error":
        return ()
    found = grounding(record.instance, record.generations[0].text)
    told = f"drawn for stage 2: {_named(found.frames)}" if found.drawn else "nothing was drawn for stage 2"
    if not found.unmatched:
        return (told,)
    return told, f"named in stage 1 and no box of this sample: {', '.join(found.unmatched)}"


def _named(frames: Sequence[tuple[Mark, ...]]) -> str:
    return ", ".join(f"{mark.label} (frame {i})" for i, marks in enumerate(frames, 1) for mark in marks)


def _drawn(instance: Instance, named: Sequence[tuple[Mark, ...]]) -> tuple[Part, ...]:
    """The instance's parts with only those marks on each frame that are its own or ``named``."""
    own = iter([count for *_, count in _frames(instance)])
    chosen = iter(named)

    def marked(frame: Media) -> Media:
        first, also = next(own, 0), next(chosen, ())
        return replace(frame, marks=tuple(m for i, m in enumerate(frame.marks) if i < first or m in also))

    return tuple(marked(part) if isinstance(part, Media) else part for part in instance.parts)


def _frames(instance: Instance) -> list[tuple[int, int, int]]:
    """Of each frame its width, its height, and how many of its marks are its own, as :mod:`instances` notes them."""
    found = [re.fullmatch(r"(\d+)x(\d+):(\d+)", each) for each in instance.strata.get("frames", "").split()]
    return [(int(each[1]), int(each[2]), int(each[3])) for each in found if each]
