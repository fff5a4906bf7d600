"""The user's own rows: images, and a file of questions and answers beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from benchmarks.cmc_bench.sources.base import Family, SourceRow, existing_path, layout_error
from benchmarks.cmc_bench.sources.mmmu import resolve_gold
from benchmarks.errors import SourceError
from benchmarks.rows.answers import answer_text, check_cells, option_texts
from benchmarks.rows.base import DOCUMENT_COLUMNS, Fields, RowProblem, check_cluster, trust_field
from benchmarks.rows.csv_rows import SUFFIXES, read_columns
from benchmarks.rows.files import RawRow, ShownImage, SkippedRow, image_loader, list_files, read_rows, text_field
from benchmarks.rows.workbook_rows import OLD_SUFFIXES as OLD_WORKBOOKS
from benchmarks.rows.workbook_rows import SUFFIXES as WORKBOOKS
from benchmarks.rows.workbook_rows import named_sheet, split_sheet
from benchmarks.vocabulary import TRUST

LAYOUT = 'a folder with rows.jsonl, one {"image": "file.png", "question": ..., "answer": ...} a line, and the images'
COLUMN_NAMES = {
    "image": ("image", "image_1"),
    "question": ("question", "query"),
    "answer": ("answer", "label"),
    "group": ("group", "subject"),
    "document": DOCUMENT_COLUMNS,
    "passage": ("passage",),
    "conflict": ("conflict",),
    "options": ("options",),
    "subfield": ("subfield",),
    "family": ("family",),
    TRUST: (TRUST,),
}
"""The columns of a file of rows, with their alternative names. The first three are required."""
REQUIRED_COLUMNS = ("image", "question", "answer")

_NAME = "rows"
_KINDS = (*SUFFIXES, *WORKBOOKS, ".jsonl", ".json", ".parquet")


def read(place: str, cluster: str = "") -> Iterator[SourceRow | SkippedRow]:
    """Yield the rows in every .jsonl file of a folder, or in one file. Raises SourceError.

    The images of a folder's rows must lie in it; a file's may lie anywhere. ``cluster`` is the column that names their
    documents, if it is none of the known ones.
    """
    file, sheet = split_sheet(Path(place))
    root = named_sheet(existing_path(_NAME, str(file), LAYOUT), sheet)
    is_file = not root.is_dir()
    folder = root.parent if is_file else root
    paths = [_table(root)] if is_file else list_files(root, ".jsonl")
    if not paths:
        raise layout_error(_NAME, root, LAYOUT)
    for file in paths:
        raw, named = None, None
        for raw in read_rows(file, folder, _NAME):
            if isinstance(raw, SkippedRow):
                yield raw
                continue
            fields = {str(name).strip().lower(): value for name, value in raw.fields.items()}
            named = check_cluster(cluster, fields, file) if named is None else named
            yield _row(replace(raw, fields=fields, anywhere=is_file), named)
        if is_file and raw is None:
            raise SourceError(f"there are no rows in {file.name}; write one below its header for each picture.")


def unused_columns(file: Path) -> list[str]:
    """Return the columns of a CSV or TSV file that are not read. Raises SourceError."""
    known = {name for names in COLUMN_NAMES.values() for name in names}
    return [name for name in read_columns(file) if name and name not in known] if _is_delimited(file) else []


def _table(file: Path) -> Path:
    """Return ``file`` if its kind and header are supported. Raises SourceError."""
    if file.suffix.lower() in OLD_WORKBOOKS:
        raise SourceError(f"{file.name} is a workbook of another kind; save it as .xlsx from your spreadsheet.")
    if not split_sheet(file)[0].name.lower().endswith(_KINDS):
        raise SourceError(f"{file.name} is no table; give one that ends in {', '.join(_KINDS[:3])}.")
    if _is_delimited(file):
        header = read_columns(file)
        for needed in REQUIRED_COLUMNS:
            if not set(COLUMN_NAMES[needed]) & set(header):
                raise SourceError(
                    f"{file.name} has no column {needed!r}; its first row names {', '.join(map(repr, header[:12]))}, and "
                    f"needs image, question and answer. {_nearest(needed, header)}".rstrip()
                )
    return file


def _nearest(needed: str, header: list[str]) -> str:
    matches = get_close_matches(needed, header, n=1, cutoff=0.7)
    return f"Is it {matches[0]!r}?" if matches else ""


def _is_delimited(file: Path) -> bool:
    return file.name.lower().endswith(SUFFIXES)


def _row(raw: RawRow, cluster: str) -> SourceRow | SkippedRow:
    fields = raw.fields
    question = text_field(fields, *COLUMN_NAMES["question"])
    try:
        check_cells(fields, [name for names in COLUMN_NAMES.values() for name in names])
        options = option_texts(fields)
        answer = resolve_gold(_answer(fields, question, options), options)
        conflict = answer_text(fields.get("conflict"), question)
        image = ShownImage(image_loader(raw, *COLUMN_NAMES["image"]))
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
        image=image,
        options=options,
        subject=text_field(fields, *COLUMN_NAMES["group"]),
        subfield=text_field(fields, "subfield"),
        passage=text_field(fields, "passage"),
        conflict=conflict,
        document=text_field(fields, *([cluster] if cluster else COLUMN_NAMES["document"])),
        trust=trust,
    )


def _answer(fields: Fields, question: str, options: Sequence[str]) -> str:
    """Return the answer's text. Raises RowProblem for what has no single meaning."""
    column = next((name for name in COLUMN_NAMES["answer"] if fields.get(name) not in (None, "")), "answer")
    return answer_text(fields.get(column), question, options, column)
