"""The build of a retrieval log: its sources are read alone, and what they answer decides a question's condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.build import Build, BuildOptions, BuildWriter, BuiltRow
from benchmarks.cmc_bench.construction.cmc_candidates import REPEATED, answer_problem, inspect_image, text_problem
from benchmarks.errors import MediaError, NothingUsableError, SpecError
from benchmarks.hash_collections import hash64
from benchmarks.retrieval.retrieval_constants import CONDITIONS, CONFLICT_CONDITIONS
from benchmarks.retrieval.retrieval_instances import instance_rows
from benchmarks.retrieval.retrieval_log_row import LogRow, StoredRow, StoredRows
from benchmarks.retrieval.retrieval_readings import SOURCES, Readings
from benchmarks.retrieval.sources import NAMES, read_source
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.reader_types import RowProblem
from benchmarks.rows.sources import resolve_sources, top_reasons
from benchmarks.source_agreement import decide
from benchmarks.vocabulary import Media, digest_of_list


def build(sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Read the logs, have their sources read alone, and write the instances to ``out``; see ``Benchmark.build``.

    Raises SpecError if sources have to be read and no model is named, NothingUsableError if no question has a conflict.
    """
    with BuildWriter(out) as writer:
        rows = StoredRows()
        usable: Counter[str] = Counter()
        for row in _usable_rows(sources, writer, options):
            rows.append(row)
            usable[row.source] += 1
        if not len(rows):
            raise NothingUsableError(f"the log has no usable row ({top_reasons(writer.skipped)}).")
        if not options.readers and not any(all(map(row.read_before, SOURCES)) for row in rows):
            raise SpecError(
                "a model has to read the log's images and passages alone first; name it with --reader, or write what they answer "
                "as image_answer and text_answer."
            )
        conditions = _write_instances(writer, rows, Readings(rows, options.readers))
        conflicts = sum(conditions[condition] for condition in CONFLICT_CONDITIONS)
        if not conflicts:
            left_out = f"; left out: {top_reasons(writer.skipped)}" if writer.skipped else ""
            raise NothingUsableError(
                f"no question of the log has sources that disagree: {conditions['aligned']} agree{left_out}. Add questions, or "
                "check what the reader reads."
            )
        return writer.finish(
            {
                "benchmark": "retrieval",
                "seed": options.seed,
                "examples": {"conflicts": conflicts, "aligned": conditions["aligned"]},
                "conditions": {condition: conditions[condition] for condition in CONDITIONS},
                "readers": [model.name for model in options.readers],
                "sources": {name: {"usable_rows": usable[name]} for name in sorted(usable)},
                "rows_sha256": digest_of_list(row.id for row in rows),
            },
            replace=options.replace,
        )


def _usable_rows(sources: Sequence[tuple[str, str]], writer: BuildWriter, options: BuildOptions) -> Iterator[StoredRow]:
    """Yield the usable rows after adding their images to the build; the others are recorded there."""
    known: set[int] = set()
    for name, place in resolve_sources("retrieval", NAMES, sources):
        for row in read_source(name, place, options.cluster, options.mapping):
            try:
                warn = partial(writer.add_warning, row.row) if name == "log" else None
                stored = row if isinstance(row, SkippedRow) else checked_row(row, writer, warn)
                if isinstance(stored, StoredRow) and hash64(stored.id) in known:
                    raise RowProblem(REPEATED)
            except RowProblem as problem:
                stored = SkippedRow(row.source, row.row, str(problem))
            if isinstance(stored, SkippedRow):
                writer.add_skipped(stored.source, stored.row, stored.reason)
            else:
                known.add(hash64(stored.id))
                yield stored


def checked_row(row: LogRow, writer: BuildWriter | None = None, warn: Callable[[str], None] | None = None) -> StoredRow:
    """Return a row with its images added to ``writer``. Raises RowProblem if the row is unusable.

    ``warn`` is called once if an image may be useless.
    """
    problem = text_problem(row.question, row.group + row.document + "".join(row.passages))
    for answer in (row.answer, row.image_answer, row.text_answer):
        problem = problem or (answer_problem(answer) if answer else None)
    if problem:
        raise RowProblem(problem)
    images, loaded = [], []
    try:
        for load in row.images:
            data = load()
            loaded.append((data, inspect_image(data, load)))
    except MediaError as error:
        raise RowProblem(f"the image {error.reason}") from error
    warnings = dict.fromkeys(warning for _, image in loaded for warning in image.warnings)
    if warnings and warn is not None:
        warn("; ".join(warnings))
    for data, image in loaded:
        images.append(Media(_sha256(data), image.suffix) if writer is None else writer.add_media(data, image.suffix))
    texts = (row.answer, row.group, row.image_answer, row.text_answer, row.document, row.trust)
    return StoredRow(row.source, row.row, row.question, row.passages, tuple(images), *texts)


def _sha256(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def _write_instances(writer: BuildWriter, rows: StoredRows, readings: Readings) -> Counter[str]:
    """Write the instances of the rows whose readings amount to a condition; return the number of each condition's."""
    conditions: Counter[str] = Counter()
    for number, row in enumerate(rows):
        image, text = (readings.reading(number, row, source) for source in SOURCES)
        problem = image.problem or text.problem
        decision = problem or decide(row.answer, image.answer, text.answer, row.question)
        if isinstance(decision, str):
            writer.add_skipped(row.source, row.row, decision)
            continue
        writer.add_built_row(BuiltRow(row.row, row.id, row.cells))
        for instance in instance_rows(row, decision):
            conditions[instance["condition"]] += 1
            writer.add_row(instance)
    return conditions
