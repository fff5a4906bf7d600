"""JSON of ``rashomon show``: tables with their headlines, specs, instances, or speeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.json_output.facts_json import Fact, facts
from app.json_output.samples_json import SampleJson
from app.json_output.tables_json import TableJson
from app.report.progress.run_speed import RunSpeed, lines
from app.report.runs.portable_facts import portable_identity, portable_path, portable_spec
from app.report.runs.run_provenance import read_provenance, spec_of
from app.report.tables.remedy_advice import Remedy
from app.store.run_facts import ExcludedInstances
from app.store.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRun:
    """A run of the tables, in words as above them.

    ``answered`` has the counts of answers, and of those that do not count; ``remarks`` are clauses on instances left out, answers
    reused and answers of poor quality; ``faults`` are the most frequent errors; ``computed`` says how answers were computed, as
    measured when each model was loaded.
    """

    name: str
    label: str
    """Its name in the tables."""
    state: str
    note: str
    answered: str
    remarks: tuple[str, ...]
    deaths: tuple[str, ...]
    """The deaths of its workers, oldest first."""
    faults: tuple[str, ...]
    computed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTables:
    """Runs with their headlines and tables. A single table that was asked for has neither headlines nor remedies.

    ``trust`` is the rule on what should win, if it was said. ``to_try`` has, for a single run, what may make its model better,
    cheapest first.
    """

    runs: tuple[ShownRun, ...]
    trust: str | None
    headlines: tuple[str, ...]
    tables: tuple[TableJson, ...]
    to_try: tuple[Remedy, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeJson:
    """A model that judged, by the judge's id, with what decides its labels."""

    judge: str
    identity: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LenderJson:
    """A run whose ``answers`` another one reused: its id, and its name at the time."""

    run: str
    name: str
    answers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReusedJson:
    """Answers that a run reused. Of the ``checked`` requests that were repeated, ``differing`` were answered differently."""

    lenders: tuple[LenderJson, ...]
    checked: int
    differing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksJson:
    """Results of the checks of a run's models: of the last sight check, of each examination of a server, of each batching."""

    sight: tuple[tuple[Fact, ...], ...]
    endpoint: tuple[tuple[Fact, ...], ...]
    batches: tuple[tuple[Fact, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecJson:
    """The spec of a run, and its provenance.

    ``data`` is the build's folder, below the workspace or its name alone. ``prompts`` has for each condition the sha256 over its
    instances' prompts, media by content. ``engines`` are those that answered, with their libraries and machines.
    """

    run: str
    created: float
    data: str | None
    spec: tuple[Fact, ...]
    identity: tuple[Fact, ...]
    prompts: dict[str, str]
    engines: tuple[tuple[Fact, ...], ...]
    judges: tuple[JudgeJson, ...]
    checks: ChecksJson
    excluded: ExcludedInstances
    reused: ReusedJson
    answers_without_digests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSpecs:
    """The specs of runs (``--spec``)."""

    specs: tuple[SpecJson, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSamples:
    """An instance of each run (``--sample``)."""

    samples: tuple[SampleJson, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkJson:
    """Work that a run's workers did; ``distinct_tokens`` and ``distinct_images`` are what perfect sharing would compute."""

    prompts: int
    prompt_tokens: int
    distinct_tokens: int
    computed_tokens: int
    images: int
    distinct_images: int
    encoded: int
    from_disk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedJson:
    """The speed of a run. Of its ``generated`` answers, ``answers`` are accepted, and ``timed`` have the times of their engine.

    ``prefill_s`` and ``decode_s`` are the seconds of the timed ones, ``tokens`` their completion tokens. ``work`` is null where
    nothing was counted; it covers ``counted`` answers. ``separate`` workers did not know what an earlier one had read.
    """

    run: str
    generated: int
    answers: int
    timed: int
    prefill_s: float
    decode_s: float
    tokens: int
    per_minute: float | None
    work: WorkJson | None
    counted: int | None
    separate: int
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSpeeds:
    """The speeds of runs (``--speed``)."""

    speeds: tuple[SpeedJson, ...]


ShowResult = ShownTables | ShownSpecs | ShownSamples | ShownSpeeds


def spec_json(folder: Path, workspace: Workspace) -> SpecJson:
    """Return the spec and the provenance of the run in a folder."""
    spec, provenance = spec_of(folder), read_provenance(folder)
    checks, reused = provenance["checks"], provenance["reused"]
    data = spec.pop("data", None)
    return SpecJson(
        run=folder.name,
        created=provenance["created"],
        data=None if data is None else portable_path(Path(data), workspace.path),
        spec=spec_facts(spec),
        identity=identity_facts(provenance["identity"]),
        prompts=provenance["prompts"],
        engines=tuple(map(facts, provenance["engines"])),
        judges=tuple(JudgeJson(judge=judge, identity=facts(known)) for judge, known in provenance["judges"].items()),
        checks=ChecksJson(**{kind: tuple(map(facts, results)) for kind, results in checks.items()}),
        excluded=provenance["excluded"],
        reused=ReusedJson(
            lenders=tuple(
                LenderJson(run=run, name=reused.names[run], answers=count) for run, count in reused.lenders.items()
            ),
            checked=reused.checked,
            differing=reused.differing,
        ),
        answers_without_digests=provenance["answers without digests"],
    )


def spec_facts(spec: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Return a run's spec as facts, without folders."""
    return facts({key: value for key, value in portable_spec(spec).items() if key != "data"})


def identity_facts(identity: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Return a run's identity as facts, without folders."""
    return facts(portable_identity(identity))


def speed_json(speed: RunSpeed) -> SpeedJson:
    """Return the speed of a run, also in words."""
    return SpeedJson(
        run=speed.run,
        **speed.times._asdict(),
        per_minute=speed.per_minute,
        work=WorkJson(**speed.work) if speed.work else None,
        counted=speed.counted,
        separate=speed.separate,
        sentences=tuple(line.strip() for line in lines(speed)),
    )
