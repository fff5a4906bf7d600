"""The user's own rows: images, and a file of questions and answers beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.cmc_bench.sources.base import OWN_ROWS, Family, SourceRow, existing_path, layout_error
from benchmarks.cmc_bench.sources.mmmu import NO_OPTION, resolve_gold
from benchmarks.errors import SourceError, UnknownKeysError
from benchmarks.rows.answers import answer_text, check_cells, option_texts
from benchmarks.rows.base import Fields, RowProblem, trust_field
from benchmarks.rows.cell_images import one_image
from benchmarks.rows.cell_passages import passage_texts
from benchmarks.rows.columns import ANSWER_KEY, COLUMN_NAMES, TABLE
from benchmarks.rows.csv_rows import SUFFIXES
from benchmarks.rows.files import RawRow, ShownImage, SkippedRow, list_files, read_rows, text_field
from benchmarks.rows.image_references import ImageReferences
from benchmarks.rows.mapping import MappedFile, map_file
from benchmarks.rows.workbook_rows import OLD_SUFFIXES as OLD_WORKBOOKS
from benchmarks.rows.workbook_rows import SUFFIXES as WORKBOOKS
from benchmarks.rows.workbook_rows import named_sheet, split_sheet

LAYOUT = 'a folder with rows.jsonl, one {"image": "file.png", "question": ..., "answer": ...} a line, and the images'
NOT_AN_OPTION = "the answer is none of the options; write one of them, or its letter"
OTHER_KEYS = "the file has other keys; name it alone, with --from"

_NAME = OWN_ROWS
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
        for raw in mapped.rows:
            yield raw if isinstance(raw, SkippedRow) else _row(mapped.columns.row(raw), shared)
        if is_file and raw is None:
            raise SourceError(f"there are no rows in {file.name}; write one below its header for each picture.")


def table_remarks(file: Path, mapping: str = "") -> list[str]:
    """Return remarks on the form of a table, and on its columns that are not read. Raises SourceError and SpecError."""
    mapped = _mapped(_table(file), file.parent, True, "", mapping)
    return mapped.columns.remarks(mapped.keys)


def _mapped(file: Path, folder: Path, anywhere: bool, cluster: str, mapping: str) -> MappedFile:
    def raw_rows() -> Iterator[RawRow | SkippedRow]:
        for raw in read_rows(file, folder, _NAME):
            yield replace(raw, anywhere=anywhere) if isinstance(raw, RawRow) else raw

    return map_file(file, raw_rows, TABLE, mapping, cluster)


def _table(file: Path) -> Path:
    """Return ``file`` if its kind is supported. Raises SourceError."""
    if file.suffix.lower() in OLD_WORKBOOKS:
        raise SourceError(f"{file.name} is a workbook of another kind; save it as .xlsx from your spreadsheet.")
    if not split_sheet(file)[0].name.lower().endswith(_KINDS):
        raise SourceError(f"{file.name} is no table; give one that ends in {', '.join(_KINDS[:3])}.")
    return file


def _row(raw: RawRow, shared: ImageReferences | None) -> SourceRow | SkippedRow:
    fields = raw.fields
    question = text_field(fields, "question")
    try:
        check_cells(fields, list(COLUMN_NAMES))
        options = option_texts(fields)
        answer = _resolved(_answer(fields, question, options), options)
        conflict = _own_value(answer_text(fields.get("conflict"), question, options), options)
        image_answer, text_answer = (
            _own_value(text_field(fields, f"{source}_answer"), options) for source in ("image", "text")
        )
        image = fields["image"] if shared is None else shared.resolved(fields["image"])
        load = ShownImage(one_image(raw, image))
        passage = "\n\n".join(passage_texts(fields["passage"])).strip()
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
        options=options,
        subject=text_field(fields, "group"),
        subfield=text_field(fields, "subfield"),
        passage=passage,
        conflict=conflict,
        document=text_field(fields, "document"),
        trust=trust,
        image_answer=image_answer,
        text_answer=text_answer,
    )


def _resolved(answer: str, options: tuple[str, ...]) -> str:
    """Return the option that an answer means. Raises RowProblem if it means none, which need not be a letter."""
    try:
        return resolve_gold(answer, options)
    except RowProblem as problem:
        if str(problem) == NO_OPTION and len(answer) > 1:
            raise RowProblem(NOT_AN_OPTION) from None
        raise


def _own_value(value: str, options: tuple[str, ...]) -> str:
    """Return the option that a conflicting value, or one of a source, means; the value itself if it means none."""
    try:
        return resolve_gold(answer_text(value, "", options), options) if value and options else value
    except RowProblem:
        return value


def _answer(fields: Fields, question: str, options: Sequence[str]) -> str:
    """Return the answer's text. Raises RowProblem for what has no single meaning."""
    return answer_text(fields["answer"], question, options, fields[ANSWER_KEY])
