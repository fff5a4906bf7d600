"""JSON of a run's instances, with their answers and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.report.samples.sample_media import preview_media
from app.report.samples.sample_rows import sample_to_json
from benchmarks.vocabulary import Media, Origin, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class StepJson:
    """A generation of an answer. Times are in seconds, memory in bytes; null is unknown."""

    text: str
    tokens: tuple[int, ...]
    finish_reason: str
    error: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    prefill_s: float | None
    decode_s: float | None
    peak_memory: int | None
    active_memory: int | None
    cache_memory: int | None
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictJson:
    """A judge's verdict: a ``label`` if its ``status`` is "labelled". ``raw`` is the reply of a model that judges."""

    status: str
    label: str | None
    reason: str
    raw: str | None
    behaviour: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MediumJson:
    """A medium of the prompt: its kind, size and further facts in words."""

    sha256: str
    facts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleJson:
    """An instance of a run, with its answer and the verdicts by the judges' ids.

    ``prompt`` has each medium as ``[IMAGE sha256]``. ``references`` are by source. ``answer`` is null if there is none yet;
    ``own_answer`` is the model's answer to the sibling on which the verdicts rest, where they rest on one.
    """

    run: str
    id: str
    group: str
    condition: str
    strata: dict[str, str]
    question: str
    prompt: str
    media: tuple[MediumJson, ...]
    references: dict[str, tuple[str, ...]]
    own_answer: str | None = None
    answer: str | None
    steps: tuple[StepJson, ...]
    verdicts: dict[str, VerdictJson]
    remarks: tuple[str, ...] = ()


def sample(run: str, record: Record, media: Mapping[Media, Path | None], remarks: Sequence[str]) -> SampleJson:
    """Return an instance of a run; ``media`` are those of its prompt with their files, None for one that is missing."""
    values = sample_to_json(record, remarks=remarks)
    return SampleJson(
        **{
            **values,
            "run": run,
            "media": tuple(
                MediumJson(sha256=medium.sha256, facts=preview_media(medium, path, 1).facts)
                for medium, path in media.items()
            ),
            "steps": tuple(
                StepJson(**{**step, "origin": generation.origin})
                for step, generation in zip(values["steps"], record.generations, strict=True)
            ),
            "verdicts": {judge: VerdictJson(**verdict) for judge, verdict in values["verdicts"].items()},
        }
    )
