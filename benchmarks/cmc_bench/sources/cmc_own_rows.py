"""The user's own rows: images, and a file of questions and answers beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from benchmarks.cmc_bench.sources.cmc_source_row import OWN_ROWS, Family, SourceRow, existing_path, layout_error
from benchmarks.cmc_bench.sources.mmmu import NO_OPTION, resolve_gold
from benchmarks.errors import SourceError, UnknownKeysError
from benchmarks.rows.cell_answers import NO_OPTIONS, answer_text, check_cells, check_date, is_letter, option_texts
from benchmarks.rows.cell_images import ImageReferences, image_values, is_image, one_image
from benchmarks.rows.cell_passages import passage_texts
from benchmarks.rows.column_mapping import MappedFile, map_file
from benchmarks.rows.csv_rows import SUFFIXES
from benchmarks.rows.files import RawRow, ShownImage, SkippedRow, list_files, read_rows, text_field
from benchmarks.rows.nested_keys import is_filled
from benchmarks.rows.number_origin import Counting
from benchmarks.rows.reader_types import Fields, RowProblem, trust_field
from benchmarks.rows.row_columns import ANSWER_KEY, TABLE
from benchmarks.rows.workbook_rows import OLD_SUFFIXES as OLD_WORKBOOKS
from benchmarks.rows.workbook_rows import SUFFIXES as WORKBOOKS
from benchmarks.rows.workbook_rows import is_workbook, named_sheet, split_sheet

LAYOUT = 'a folder with rows.jsonl, one {"image": "file.png", "question": ..., "answer": ...} a line, and the images'
NOT_AN_OPTION = "the answer is none of the options; write one of them, or its letter"
OTHER_KEYS = "the file has other keys; name it alone, with --from"

_NAME = OWN_ROWS
_MOST_NOTES = 20
_IMAGE_NAME = re.compile(r"\.(?:png|jpe?g|gif|webp|bmp|tiff?|pdf)\b|://", re.IGNORECASE)
_KINDS = (*SUFFIXES, *WORKBOOKS, ".jsonl", ".json", ".parquet", ".yaml", ".yml")


def read(place: str, cluster: str = "", mapping: str = "") -> Iterator[SourceRow | SkippedRow]:
    """Yield the rows in every .jsonl file of a folder, or in one file. Raises SourceError and SpecError.

    The images of a folder's rows must lie in it; a file's may lie anywhere. ``cluster`` is the column that names their
    documents, if it is none of the known ones, and ``mapping`` the text of ``--map``.
    """
    file, sheet = split_sheet(Path(place))
    root = named_sheet(existing_path(_NAME, str(file), LAYOUT), sheet)
    is_file = not root.is_dir()
    paths = [_table(root)] if is_file else list_files(root, ".jsonl")
    if not paths:
        raise layout_error(_NAME, root, LAYOUT)
    for file in paths:
        try:
            mapped = _mapped(file, root.parent if is_file else root, is_file, cluster, mapping)
        except UnknownKeysError:
            if len(paths) == 1:
                raise
            yield SkippedRow(_NAME, file.name, OTHER_KEYS)
            continue
        preset = mapped.columns.preset
        shared = (
            ImageReferences(partial(read_rows, file, file.parent, _NAME)) if preset and preset.shares_images else None
        )
        raw = None
        for raw in _rows(mapped, has_notes=file.suffix.lower() in SUFFIXES or is_workbook(file)):
            yield raw if isinstance(raw, SkippedRow) else _row(mapped, raw, shared)
        if is_file and raw is None:
            raise SourceError(f"there are no rows in {file.name}; write one below its header for each picture.")


def table_remarks(file: Path, mapping: str = "") -> list[str]:
    """Return remarks on the form of a table, and on its columns that are not read. Raises SourceError and SpecError."""
    mapped = _mapped(_table(file), file.parent, True, "", mapping)
    return mapped.columns.remarks(mapped.keys)


def _mapped(file: Path, folder: Path, anywhere: bool, cluster: str, mapping: str) -> MappedFile:
    return map_file(file, partial(read_rows, file, folder, _NAME, anywhere=anywhere), TABLE, mapping, cluster)


def _table(file: Path) -> Path:
    """Return ``file`` if its kind is supported. Raises SourceError."""
    if file.suffix.lower() in OLD_WORKBOOKS:
        raise SourceError(f"{file.name} is a workbook of another kind; save it as .xlsx from your spreadsheet.")
    if not split_sheet(file)[0].name.lower().endswith(_KINDS):
        raise SourceError(f"{file.name} is no table; give one that ends in {', '.join(_KINDS[:3])}.")
    return file


def _rows(mapped: MappedFile, *, has_notes: bool) -> Iterator[RawRow | SkippedRow]:
    """Yield the rows of a file; a table ``has_notes`` below it, such as its source, which are no rows."""
    notes: list[RawRow] = []
    is_below = False
    for raw in mapped.rows:
        if has_notes and is_below and len(notes) < _MOST_NOTES and isinstance(raw, RawRow) and _is_note(mapped, raw):
            notes.append(raw)
            continue
        yield from notes
        notes.clear()
        yield raw
        is_below = True


def _is_note(mapped: MappedFile, raw: RawRow) -> bool:
    """Return whether a row has one cell only: several words or a sum, and neither a question nor the name of a picture."""
    cells = [*islice(filter(is_filled, raw.fields.values()), 2)]
    if len(cells) != 1:
        return False
    row = mapped.columns.row(raw)
    image = row.fields["image"]
    if row.fields["question"] is not None or is_image(row, image) or _IMAGE_NAME.search(str(image)):
        return False
    return row.fields["answer"] is not None or re.search(r"\w\W+\w", str(cells[0])) is not None


def _row(mapped: MappedFile, raw: RawRow, shared: ImageReferences | None) -> SourceRow | SkippedRow:
    raw = mapped.columns.row(raw)
    fields = raw.fields
    question = text_field(fields, "question")
    try:
        check_cells(fields)
        options = option_texts(fields)
        answer = answer_text(fields["answer"], question, options, fields[ANSWER_KEY])
        if not options and mapped.columns.has_options and is_letter(answer):
            raise RowProblem(NO_OPTIONS)
        answer = _resolved(answer, options, mapped.counting)
        conflict, image_answer, text_answer = (
            _source_value(fields, name, question, options, mapped.counting)
            for name in ("conflict", "image_answer", "text_answer")
        )
        image = fields["image"] if shared is None else shared.resolved(fields["image"])
        mapped.counting.check_pages(image_values(image))
        load = ShownImage(one_image(raw, image))
        passage = "\n\n".join(passage_texts(fields["passage"])).strip()
        check_date(answer, question, passage)
        trust = trust_field(fields)
    except RowProblem as problem:
        return SkippedRow(_NAME, raw.where, str(problem), problem.place)
    family: Family = "mmmu" if options or text_field(fields, "family") == "mmmu" else "chartqa"
    return SourceRow(
        source=_NAME,
        row=raw.where,
        family=family,
        question=question,
        answer=answer,
        image=load,
        options=tuple(filter(None, options)),
        subject=text_field(fields, "group"),
        subfield=text_field(fields, "subfield"),
        passage=passage,
        conflict=conflict,
        document=text_field(fields, "document"),
        trust=trust,
        image_answer=image_answer,
        text_answer=text_answer,
    )


def _resolved(answer: str, options: tuple[str, ...], counting: Counting) -> str:
    """Return the option that an answer means. Raises RowProblem if it means none, which need not be a letter."""
    try:
        option = resolve_gold(counting.option(answer, options) if options else answer, options)
    except RowProblem as problem:
        if str(problem) == NO_OPTION and not is_letter(answer):
            raise RowProblem(NOT_AN_OPTION) from None
        raise
    if answer and not option:
        raise RowProblem(NO_OPTION)
    return option


def _source_value(fields: Fields, name: str, question: str, options: tuple[str, ...], counting: Counting) -> str:
    """Return the option that a value of a source means, or the value itself, as it need not be an option; "" if there is none.

    Raises RowProblem for a letter that no option has.
    """
    text = answer_text(fields.get(name), question, options, name)
    try:
        return _resolved(text, options, counting) if text and options else text
    except RowProblem:
        if is_letter(text):
            raise
        return text
