"""Details of a single sample, gathered for a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.report.judge_selection import effective_judges
from app.report.media import media_path
from app.run_spec import RunSpec, parse_stored
from app.store.run import RunStore
from app.store.samples import SampleRow
from app.store.workspace import Workspace
from benchmarks.answer_confidence import likelihood_remarks
from benchmarks.base import Benchmark
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Media, Message, Record


@dataclass(frozen=True)
class SampleDetail:
    """Details of one sample.

    Attributes:
        judges: The ids of the judges whose labels count: the first that has judged.
        steps: The conversations sent, one a step.
        media: Every medium in ``steps`` once, with its file.
        siblings: The rows of all samples of the same example, this one included.
    """

    row: SampleRow
    record: Record
    benchmark: Benchmark
    judges: tuple[str, ...]
    steps: tuple[tuple[Message, ...], ...]
    media: tuple[tuple[Media, Path | None], ...]
    siblings: tuple[SampleRow, ...]
    remarks: tuple[str, ...]


def read_sample_detail(
    workspace: Workspace, folder: Path, ordinal: int, judges: Sequence[str] | None = None
) -> SampleDetail | None:
    """Read the details of a sample, with the labels of the first of ``judges`` that has judged; None if it is gone."""
    with RunStore.read(folder) as store:
        return sample_detail(workspace, store, ordinal, judges)


def sample_detail(
    workspace: Workspace, store: RunStore, ordinal: int, judges: Sequence[str] | None = None
) -> SampleDetail | None:
    """Return what :func:`read_sample_detail` does, from an open store."""
    judge_ids = effective_judges(store) if judges is None else tuple(judges)
    rows = store.sample_rows([ordinal], judge_ids)
    record = next(store.records(only=rows[0].id), None) if rows else None
    if record is None:
        return None
    spec = parse_stored(RunSpec, store.meta("spec"), str(store.folder))
    build = workspace.build_of(store)
    siblings = tuple(store.siblings(ordinal, judge_ids))
    benchmark = get_benchmark(spec.benchmark)
    steps = _conversations(spec, record)
    sent = dict.fromkeys(
        part for messages in steps for message in messages for part in message.parts if isinstance(part, Media)
    )
    return SampleDetail(
        rows[0],
        record,
        benchmark,
        judge_ids,
        steps,
        tuple((media, media_path(build, media)) for media in sent),
        siblings,
        (*benchmark.remarks(record), *likelihood_remarks(record, benchmark.options(record.instance))),
    )


def _conversations(spec: RunSpec, record: Record) -> tuple[tuple[Message, ...], ...]:
    """Rebuild the requests of a record; for a pending instance, its first request."""
    protocol = spec.to_protocol()
    steps = []
    for count in range(max(1, len(record.generations))):
        request = protocol.next(record.instance, record.generations[:count])
        if request is not None:
            steps.append(request.messages)
    return tuple(steps)
