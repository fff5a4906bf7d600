"""Retrieval logs: rows of a question, the passages and page images retrieved for it, and optionally the right answer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.errors import SourceError
from benchmarks.retrieval.retrieval_constants import LONGEST_PASSAGE, LONGEST_PASSAGES, MOST_IMAGES, MOST_PASSAGES
from benchmarks.retrieval.retrieval_log_row import LogRow
from benchmarks.rows.cell_answers import answer_text, check_cells
from benchmarks.rows.cell_images import cell_image, image_values
from benchmarks.rows.cell_passages import passage_texts
from benchmarks.rows.column_mapping import MappedFile, map_file
from benchmarks.rows.files import Loader, RawRow, ShownImage, SkippedRow, file_remarks, read_rows, text_field
from benchmarks.rows.number_origin import Counting
from benchmarks.rows.placeholder_texts import is_placeholder, is_unanswerable
from benchmarks.rows.reader_types import Fields, RowProblem, trust_field
from benchmarks.rows.row_columns import ANSWER_KEY, LOG
from benchmarks.rows.sources import existing_path, layout_error
from benchmarks.rows.workbook_rows import SUFFIXES as WORKBOOKS
from benchmarks.rows.workbook_rows import named_sheet, split_sheet

LAYOUT = (
    'a .jsonl file, one {"question": ..., "passages": [...], "images": ["page.png", "report.pdf#page=3"], "answer": ...} '
    "a line"
)
NO_PASSAGES = "the row has no passages"
NO_IMAGES = "the row has no images"
LONG_PASSAGE = f"a passage is longer than {LONGEST_PASSAGE:,} characters, or all are longer than {LONGEST_PASSAGES:,}"
MANY = f"the row has more than {MOST_PASSAGES} passages or {MOST_IMAGES} images"

_NAME = "log"
_KINDS = (".jsonl", ".json", ".parquet", ".csv", ".tsv", ".yaml", ".yml", *WORKBOOKS)


def read(place: str, cluster: str = "", mapping: str = "") -> Iterator[LogRow | SkippedRow]:
    """Yield the rows of a log, whose documents the key ``cluster`` names if it is none of the known ones.

    ``mapping`` is the text of ``--map``. Raises SpecError for another text, SourceError for a file that is no log, or in which
    every line has other keys.
    """
    mapped = _mapped(place, cluster, mapping)
    raw = None
    for raw in mapped.rows:
        yield raw if isinstance(raw, SkippedRow) else _row(mapped.columns.row(raw), mapped.counting)
    if raw is None:
        raise SourceError(f"there are no rows in {Path(place).name}; write one line for each question.")


def log_remarks(place: str, mapping: str = "") -> list[str]:
    """Return remarks on the form of a log, its other sheets, and its keys that are not read. Raises SourceError and SpecError."""
    mapped = _mapped(place, "", mapping)
    return [*mapped.columns.remarks(mapped.keys), *file_remarks(Path(place))]


def _mapped(place: str, cluster: str, mapping: str) -> MappedFile:
    file, sheet = split_sheet(Path(place))
    file = existing_path(_NAME, str(file), LAYOUT)
    if not file.is_file() or not file.name.lower().endswith(_KINDS):
        raise layout_error(_NAME, file, LAYOUT)
    file = named_sheet(file, sheet)

    return map_file(file, partial(read_rows, file, file.parent, _NAME, anywhere=True), LOG, mapping, cluster)


def _row(raw: RawRow, counting: Counting) -> LogRow | SkippedRow:
    fields = raw.fields
    try:
        check_cells(fields)
        passages = _passages(fields["passage"])
        counting.check_pages(image_values(fields["image"]))
        images = _images(raw)
        trust = trust_field(fields)
        question = text_field(fields, "question")
        answers = [_answer(fields, name, question) for name in ("answer", "image_answer", "text_answer")]
    except RowProblem as problem:
        return SkippedRow(_NAME, raw.where, str(problem), problem.place)
    return LogRow(
        _NAME,
        raw.where,
        question,
        passages,
        images,
        answer=answers[0],
        group=text_field(fields, "group"),
        image_answer=answers[1],
        text_answer=answers[2],
        document=text_field(fields, "document"),
        trust=trust,
    )


def _passages(value: object) -> tuple[str, ...]:
    texts = passage_texts(value)
    if not texts:
        raise RowProblem(NO_PASSAGES)
    if max(map(len, texts)) > LONGEST_PASSAGE or sum(map(len, texts)) > LONGEST_PASSAGES:
        raise RowProblem(LONG_PASSAGE)
    if len(texts) > MOST_PASSAGES:
        raise RowProblem(MANY)
    return texts


def _images(raw: RawRow) -> tuple[Loader, ...]:
    values = image_values(raw.fields["image"])
    if not values:
        raise RowProblem(NO_IMAGES)
    if len(values) > MOST_IMAGES:
        raise RowProblem(MANY)
    return tuple(ShownImage(cell_image(raw, value)) for value in values)


def _answer(fields: Fields, name: str, question: str) -> str:
    """Return an answer's text; "" if there is none. Raises RowProblem for what has no single meaning."""
    value = fields[name]
    if isinstance(value, str) and (is_placeholder(value) or is_unanswerable(value)):
        return ""
    return answer_text(value, question, column=fields[ANSWER_KEY] if name == "answer" else name)
