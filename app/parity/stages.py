"""What is looked at, stage by stage, and what is found of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from benchmarks.rows.sources import times

Stage = Literal["asked", "prompt", "tokens", "images", "pixels", "numerics", "batching", "decoding", "judge"]

STAGES: Mapping[Stage, str] = {
    "asked": "what is asked",
    "prompt": "the prompt after the chat template",
    "tokens": "the prompt's tokens",
    "images": "the images shown",
    "pixels": "the processed pixels",
    "numerics": "what the weights make of the same inputs",
    "batching": "an answer alone and the answer in the run",
    "decoding": "how answers are decoded",
    "judge": "the judge",
}
"""The stages in the order in which an answer comes about, and what each is in words."""

Found = Literal["same", "noise", "differs", "unknown"]


@dataclass(frozen=True, slots=True)
class StageFinding:
    """One stage. ``said`` is what was seen; ``cause`` what is the matter where it ``differs``, to stand behind a colon."""

    stage: Stage
    found: Found
    said: str
    cause: str = ""


def counted(stage: Stage, causes: Iterable[str], what: str) -> StageFinding:
    """The finding of a stage that was looked at case by case: ``causes`` is empty for each case that is the same."""
    every = list(causes)
    differing = Counter(cause for cause in every if cause)
    same = len(every) - differing.total()
    said = f"{same} of {len(every)} {what} are the same"
    if not differing:
        return StageFinding(stage, "same" if every else "unknown", said if every else f"no {what} to look at")
    (cause, often), *others = differing.most_common()
    more = f"; {len(others)} other difference{'s'[: len(others) > 1]}" if others else ""
    return StageFinding(stage, "differs", f"{said}; {times(often)}: {cause}{more}", cause)
