"""Details of a single sample, gathered for a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.report.samples.sample_media import media_path
from app.report.tables.judge_selection import effective_judges
from app.run_spec import RunSpec, parse_stored
from app.store.run_store import RunStore
from app.store.sample_lists import SampleRow
from app.store.workspace import Workspace
from benchmarks.answer_confidence import likelihood_remarks
from benchmarks.base import Benchmark
from benchmarks.protocols.protocols import Protocol
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Media, Message, Record


@dataclass(frozen=True)
class SampleDetail:
    """Details of one sample.

    Attributes:
        judges: The ids of the judges whose labels count: the first that has judged.
        build: The folder of the run's build.
        steps: The conversations sent, one a step.
        media: Every medium in ``steps`` once, with its file.
        siblings: The rows of all samples of the same example, this one included.
    """

    row: SampleRow
    record: Record
    benchmark: Benchmark
    judges: tuple[str, ...]
    build: Path
    steps: tuple[tuple[Message, ...], ...]
    media: tuple[tuple[Media, Path | None], ...]
    remarks: tuple[str, ...]
    siblings: tuple[SampleRow, ...] = ()


def read_sample_detail(
    workspace: Workspace, folder: Path, ordinal: int, judges: Sequence[str] | None = None
) -> SampleDetail | None:
    """Read the details of a sample, with the labels of the first of ``judges`` that has judged; None if it is gone."""
    with RunStore.read(folder) as store:
        judge_ids = effective_judges(store) if judges is None else tuple(judges)
        detail = sample_details(workspace, store, [ordinal], judge_ids).get(ordinal)
        return None if detail is None else replace(detail, siblings=tuple(store.siblings(ordinal, judge_ids)))


def sample_details(
    workspace: Workspace, store: RunStore, ordinals: Sequence[int], judges: Sequence[str]
) -> dict[int, SampleDetail]:
    """Return the details of samples by ordinal, without their siblings; those that are gone are left out.

    What the samples share is read once.
    """
    spec = parse_stored(RunSpec, store.meta("spec"), str(store.folder))
    build, benchmark, protocol = workspace.build_of(store), get_benchmark(spec.benchmark), spec.to_protocol()
    rows = {row.ordinal: row for row in store.sample_rows(ordinals, judges)}
    details = {}
    for page in store.pages(at=[*rows]):
        for stored in page.instances:
            record = store.record(page, stored, store.instance(stored))
            steps = _conversations(protocol, record)
            sent = dict.fromkeys(
                part for messages in steps for message in messages for part in message.parts if isinstance(part, Media)
            )
            remarks = (*benchmark.remarks(record), *likelihood_remarks(record, benchmark.options(record.instance)))
            details[stored[0]] = SampleDetail(
                rows[stored[0]],
                record,
                benchmark,
                tuple(judges),
                build,
                steps,
                tuple((media, media_path(build, media)) for media in sent),
                remarks,
            )
    return details


def _conversations(protocol: Protocol, record: Record) -> tuple[tuple[Message, ...], ...]:
    """Rebuild the requests of a record; for a pending instance, its first request."""
    steps = []
    for count in range(max(1, len(record.generations))):
        request = protocol.next(record.instance, record.generations[:count])
        if request is not None:
            steps.append(request.messages)
    return tuple(steps)
