"""The user's own rows: images, and a file of questions and answers beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from benchmarks.cmc_bench.sources.base import OWN_ROWS, Family, SourceRow, existing_path, layout_error
from benchmarks.cmc_bench.sources.mmmu import parse_options, resolve_gold
from benchmarks.errors import SourceError
from benchmarks.rows.base import DOCUMENT_COLUMNS, Fields, RowProblem, check_cluster, trust_field
from benchmarks.rows.csv_rows import SUFFIXES, read_columns
from benchmarks.rows.files import RawRow, ShownImage, SkippedRow, image_loader, list_files, read_rows, text_field
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
    "image_answer": ("image_answer",),
    "text_answer": ("text_answer",),
}
"""The columns of a file of rows, with their alternative names. The first three are required."""
REQUIRED_COLUMNS = ("image", "question", "answer")

_NAME = OWN_ROWS
_KINDS = (*SUFFIXES, ".jsonl", ".json", ".parquet")
_YES_NO = {True: "Yes", False: "No"}


def read(place: str, cluster: str = "") -> Iterator[SourceRow | SkippedRow]:
    """Yield the rows in every .jsonl file of a folder, or in one file. Raises SourceError.

    The images of a folder's rows must lie in it; a file's may lie anywhere. ``cluster`` is the column that names their
    documents, if it is none of the known ones.
    """
    root = existing_path(_NAME, place, LAYOUT)
    is_file = root.is_file()
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
    if not file.name.lower().endswith(_KINDS):
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
    options = parse_options(_options(fields))
    family: Family = "mmmu" if options or text_field(fields, "family") == "mmmu" else "chartqa"
    try:
        answer = resolve_gold(_answer(fields), options)
        image = ShownImage(image_loader(raw, *COLUMN_NAMES["image"]))
        trust = trust_field(fields)
    except RowProblem as problem:
        return SkippedRow(_NAME, raw.where, str(problem), problem.place)
    return SourceRow(
        source=_NAME,
        row=raw.where,
        family=family,
        question=text_field(fields, *COLUMN_NAMES["question"]),
        answer=answer,
        image=image,
        options=options,
        subject=text_field(fields, *COLUMN_NAMES["group"]),
        subfield=text_field(fields, "subfield"),
        passage=text_field(fields, "passage"),
        conflict=text_field(fields, "conflict"),
        document=text_field(fields, *([cluster] if cluster else COLUMN_NAMES["document"])),
        trust=trust,
        image_answer=text_field(fields, "image_answer"),
        text_answer=text_field(fields, "text_answer"),
    )


def _options(fields: Fields) -> object:
    """Return the options; a table cell may separate them by bars."""
    options = fields.get("options")
    if isinstance(options, str) and "|" in options and not options.lstrip().startswith(("[", "{")):
        return [option.strip() for option in options.split("|")]
    return options


def _answer(fields: Fields) -> str:
    """Return the answer's text; true and false become Yes and No."""
    answers = {name: fields.get(name) for name in COLUMN_NAMES["answer"]}
    return text_field(
        {name: _YES_NO[value] if isinstance(value, bool) else value for name, value in answers.items()}, *answers
    )
