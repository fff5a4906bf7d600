"""A check of a retrieval log: what each line becomes, or its problem and the fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from benchmarks.build import BuildOptions
from benchmarks.retrieval.retrieval_build import checked_row
from benchmarks.retrieval.retrieval_instances import instance_from_row, instance_rows
from benchmarks.retrieval.retrieval_log_row import LogRow
from benchmarks.retrieval.retrieval_readings import SOURCES
from benchmarks.retrieval.sources import read_source
from benchmarks.retrieval.sources.retrieval_log_file import LONG_PASSAGE, NO_IMAGES, NO_PASSAGES, log_remarks
from benchmarks.rows.closest_file import NearFiles
from benchmarks.rows.files import NOT_JSON, Loader, SkippedRow
from benchmarks.rows.reader_types import RowProblem, trust_remarks
from benchmarks.rows.row_checks import ReadRow, RowChecks, RowPreview, TableCheck, fix_with_file
from benchmarks.source_agreement import decide
from benchmarks.vocabulary import Media

_FIXES = {
    NOT_JSON: "write one JSON object a line",
    NO_PASSAGES: 'write the retrieved texts as "passages": ["...", "..."]',
    NO_IMAGES: 'write the page images as "images": ["page.png", "report.pdf#page=3"]',
    LONG_PASSAGE: "split the passage, as a pipeline does for a model",
    "the row has no question": 'write a question as "question"',
}


def check_rows(file: Path, options: BuildOptions) -> TableCheck:
    """Return the result of each line of ``file``, without a model. Raises SourceError for an unreadable file."""
    checks = RowChecks(lambda number: _preview(file, number, options))
    near = NearFiles(file.parent)
    counts: Counter[str] = Counter()
    said, idle = 0, 0
    for number, row in enumerate(read_source("log", str(file), options.cluster, options.mapping)):
        warnings: list[str] = []
        problem = row if isinstance(row, SkippedRow) else _problem(row, warnings.append)
        if problem is not None:
            message, _, fix = problem.reason.partition("; ")
            checks.append(problem.row, False, message, fix_with_file(_FIXES.get(problem.reason, fix), problem, near))
            continue
        assert isinstance(row, LogRow)
        message = _summary(row)
        example = None if message.endswith(_TO_READ) else number
        checks.append(row.row, True, message, example=example, warning="".join(warnings))
        counts[condition := message.rpartition(": ")[2]] += 1
        said += bool(row.trust)
        idle += bool(row.trust) and condition == "aligned"
    remarks = log_remarks(str(file), options.mapping)
    remarks += [f"{count} {what}" for what, count in counts.items()]
    remarks += checks.warning_remarks()
    if counts.keys() == {"aligned"}:
        remarks.append("none is a conflict, so nothing can be built")
    remarks += trust_remarks(counts.total(), said)
    if idle:
        remarks.append(f"what should win decides nothing in {idle} row{'s'[: idle > 1]}, whose sources agree")
    return TableCheck(checks, remarks)


def read_rows(file: Path, mapping: str) -> Iterator[ReadRow]:
    """Yield the lines of ``file`` as a build reads them. Raises SourceError and SpecError."""
    for row in read_source("log", str(file), mapping=mapping):
        if isinstance(row, SkippedRow):
            yield ReadRow.left_out(row)
        else:
            yield ReadRow.of(row.row, (row.question, row.answer), row.images, row.passages, usable=bool(row.question))


_TO_READ = "to be read by --reader"


def _problem(row: LogRow, warn: Callable[[str], None]) -> SkippedRow | None:
    try:
        stored = checked_row(row, warn=warn)
        if all(map(stored.read_before, SOURCES)):
            decision = decide(row.answer, row.image_answer, row.text_answer, row.question)
            if isinstance(decision, str):
                raise RowProblem(decision)
    except RowProblem as problem:
        return SkippedRow(row.source, row.row, str(problem))
    return None


def _summary(row: LogRow) -> str:
    images, passages = len(row.images), len(row.passages)
    retrieved = f"{images} image{'s'[: images > 1]}, {passages} passage{'s'[: passages > 1]}"
    if not row.image_answer or not row.text_answer:
        return f"{retrieved}: {_TO_READ}"
    decision = decide(row.answer, row.image_answer, row.text_answer, row.question)
    assert not isinstance(decision, str)
    return " ".join(
        f"{retrieved}; images say {row.image_answer}, passages say {row.text_answer}: {decision.condition}".split()
    )


def _preview(file: Path, number: int, options: BuildOptions) -> RowPreview:
    """Return what the log's row of this number becomes; the file is read again, so that memory holds no rows."""
    row = next(islice(read_source("log", str(file), options.cluster, options.mapping), number, None), None)
    if not isinstance(row, LogRow):
        return RowPreview()
    stored = checked_row(row)
    decision = decide(row.answer, row.image_answer, row.text_answer, row.question)
    if isinstance(decision, str):
        return RowPreview()
    instances = tuple(instance_from_row(fields, "paper") for fields in instance_rows(stored, decision))
    loaders: dict[Media, Loader] = dict(zip(stored.images, row.images, strict=True))
    return RowPreview(instances[:1], loaders)
