"""Reading of an answer for CrossCheck-Bench's tables, whatever the judge."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.crosscheck_bench.crosscheck_exact_match import final_answer, is_right, match_whole_reply
from benchmarks.crosscheck_bench.crosscheck_protocol import grounding
from benchmarks.text.answer_text import answer_outcome
from benchmarks.vocabulary import Record


class Stages(NamedTuple):
    """The stages of an instance under MM-CoT.

    Attributes:
        first: True if stage 1 has an answer that is no error.
        second: The same for stage 2.
        is_drawn: True if stage 1 names boxes of its sample.
        unmatched: The number of boxes that it names and that the sample does not have.
    """

    first: bool = False
    second: bool = False
    is_drawn: bool = False
    unmatched: int = 0


class CrossCheckReading(NamedTuple):
    """The reading of a record.

    Attributes:
        printed: True if the whole reply to a closed question is the right answer.
        extracted: True if its final answer is.
        chooses_none: True if its final answer is none of the options.
        stages: The stages under MM-CoT; None under other strategies.
    """

    printed: bool
    extracted: bool
    chooses_none: bool
    stages: Stages | None


def read(record: Record) -> CrossCheckReading:
    """Return the reading of a record."""
    is_closed = record.instance.strata.get("form") != "open" and answer_outcome(record) == "labelled"
    answer = final_answer(record)[0] if is_closed else None
    return CrossCheckReading(
        is_closed and match_whole_reply(record)[0] == "CORRECT",
        answer is not None and is_right(record, answer),
        is_closed and answer is None,
        _stages(record) if record.instance.condition == "mm-cot" else None,
    )


def _stages(record: Record) -> Stages:
    steps = record.generations
    if not steps or steps[0].finish_reason == "error":
        return Stages()
    named = grounding(record.instance, steps[0].text)
    second = len(steps) > 1 and steps[1].finish_reason != "error"
    return Stages(True, second, bool(named.count), len(named.unmatched))
