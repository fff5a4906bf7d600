"""Detail: everything there is to see of one sample, gathered for a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.report.judge_selection import effective
from app.report.media import media_path
from app.run_spec import RunSpec
from app.store.run import RunStore
from app.store.samples import SampleRow
from app.store.workspace import Workspace
from benchmarks.base import Benchmark, Media, Message, Record, get_benchmark


@dataclass(frozen=True)
class SampleDetail:
    """One sample. ``steps`` are the conversations that were sent, one a step; ``media`` is every medium in them once."""

    row: SampleRow
    record: Record
    benchmark: Benchmark
    steps: tuple[tuple[Message, ...], ...]
    media: tuple[tuple[Media, Path | None], ...]
    siblings: tuple[SampleRow, ...]
    remarks: tuple[str, ...]


def detail(
    workspace: Workspace, folder: Path, ordinal: int, judges: Sequence[str] | None = None
) -> SampleDetail | None:
    """What there is to see of a sample, with the labels of the first of ``judges`` that has judged; None where it is gone."""
    with RunStore.read(folder) as store:
        whose = effective(store) if judges is None else tuple(judges)
        rows = store.sample_rows([ordinal], whose)
        record = next(store.records(only=rows[0].id), None) if rows else None
        if record is None:
            return None
        spec = RunSpec.model_validate(store.meta("spec"))
        build = workspace.build_of(store)
        siblings = tuple(store.siblings(ordinal, whose))
    benchmark = get_benchmark(spec.benchmark)
    steps = _sent(spec, record)
    shown = dict.fromkeys(
        part for messages in steps for message in messages for part in message.parts if isinstance(part, Media)
    )
    return SampleDetail(
        rows[0],
        record,
        benchmark,
        steps,
        tuple((media, media_path(build, media)) for media in shown),
        siblings,
        benchmark.remarks(record),
    )


def _sent(spec: RunSpec, record: Record) -> tuple[tuple[Message, ...], ...]:
    """The requests, made again from what is stored; of an instance that nothing was asked of, the one that will be."""
    protocol = spec.protocol()
    steps = []
    for count in range(max(1, len(record.generations))):
        request = protocol.next(record.instance, record.generations[:count])
        if request is not None:
            steps.append(request.messages)
    return tuple(steps)
