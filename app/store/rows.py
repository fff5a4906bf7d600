"""What goes into a run's store and comes out of it, besides the vocabulary of ``benchmarks.base``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.base import Generation, Instance, Verdict


@dataclass(frozen=True, slots=True)
class NewAnswer:
    """A finished generation on its way into the store."""

    ordinal: int
    condition: str
    step: int
    request_digest: str
    generation: Generation
    last: bool
    """Whether the protocol asks nothing more of this instance."""
    verdicts: tuple[Verdict, ...] = ()
    correct: tuple[bool, ...] = ()
    """For each verdict, whether its label is right under the condition."""
    finished_at: float | None = None
    """When it came, in seconds since 1970; None: now."""


@dataclass(frozen=True, slots=True)
class JudgedCounts:
    """How many answers of one condition one judge has labelled, found right, found unparsed, or failed on."""

    labelled: int = 0
    correct: int = 0
    unparsed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class ConditionProgress:
    """How far one condition of a run is. ``seconds`` is the time spent answering, ``peak_memory`` in bytes."""

    condition: str
    total: int
    done: int
    errors: int
    truncated: int
    tokens: int
    seconds: float
    peak_memory: int
    judged: Mapping[str, JudgedCounts]


@dataclass(frozen=True, slots=True)
class PendingInstance:
    """An instance that is not done, with the accepted generations of its earlier steps."""

    ordinal: int
    instance: Instance
    generations: tuple[Generation, ...]


@dataclass(frozen=True, slots=True)
class InstancePosition:
    """Where an instance stands in a run: its ordinal, its example, its condition, and whether it is done."""

    ordinal: int
    group: str
    condition: str
    done: bool


def progress_to_json(progress: ConditionProgress) -> dict[str, Any]:
    """A condition's progress as a JSON object."""
    return asdict(progress)
