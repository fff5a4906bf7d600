"""Stages of an answer, and the finding at each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from benchmarks.rows.sources import format_times

Stage = Literal["asked", "prompt", "tokens", "images", "pixels", "numerics", "batching", "decoding", "judge"]

STAGES: Mapping[Stage, str] = {
    "asked": "the request",
    "prompt": "the prompt after the chat template",
    "tokens": "the prompt's tokens",
    "images": "the input images",
    "pixels": "the processed pixels",
    "numerics": "the logits for the same inputs",
    "batching": "the batching of requests",
    "decoding": "the decoding parameters",
    "judge": "the judge",
}
"""Descriptions of the stages, in the order in which an answer comes about."""

StageStatus = Literal["same", "noise", "differs", "unknown"]


@dataclass(frozen=True, slots=True)
class StageFinding:
    """The finding at one stage: a summary, and the cause where it ``differs``, worded to follow a colon."""

    stage: Stage
    status: StageStatus
    summary: str
    cause: str = ""


def count_finding(stage: Stage, causes: Iterable[str], noun: str) -> StageFinding:
    """Return the finding of a stage that is compared case by case; ``causes`` has an empty text for each equal case."""
    cases = list(causes)
    differing = Counter(cause for cause in cases if cause)
    same_count = len(cases) - differing.total()
    summary = f"{same_count} of {len(cases)} {noun} are the same"
    if not differing:
        return StageFinding(stage, "same" if cases else "unknown", summary if cases else f"no {noun} to compare")
    (cause, count), *others = differing.most_common()
    more = f"; {len(others)} other difference{'s'[: len(others) > 1]}" if others else ""
    return StageFinding(stage, "differs", f"{summary}; {format_times(count)}: {cause}{more}", cause)
