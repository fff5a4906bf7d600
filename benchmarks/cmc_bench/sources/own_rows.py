"""Rows of the user's own: images, and a file of questions and answers beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from benchmarks.cmc_bench.sources import Family, SourceRow, folder_of, wrong_folder
from benchmarks.cmc_bench.sources.mmmu import gold_of, options_of
from benchmarks.errors import SourceError
from benchmarks.rows.csv_rows import SUFFIXES, columns
from benchmarks.rows.files import Fields, RawRow, RowProblem, SkippedRow, files, image_loader, rows, text

LAYOUT = 'a folder with rows.jsonl, one {"image": "file.png", "question": ..., "answer": ...} a line, and the images'
NAMES = {
    "image": ("image", "image_1"),
    "question": ("question", "query"),
    "answer": ("answer", "label"),
    "group": ("group", "subject"),
    "passage": ("passage",),
    "conflict": ("conflict",),
    "options": ("options",),
    "subfield": ("subfield",),
    "family": ("family",),
}
"""The columns of a file of rows, and how else each may be called. The first three are needed."""
NEEDED = ("image", "question", "answer")

_NAME = "rows"
_KINDS = (*SUFFIXES, ".jsonl", ".json", ".parquet")
_YES_NO = {True: "Yes", False: "No"}


def read(place: str) -> Iterator[SourceRow | SkippedRow]:
    """The rows in every .jsonl file of a folder, or in one file. Raises SourceError.

    The images of a folder's rows must lie in it; a file's may lie anywhere.
    """
    root = folder_of(_NAME, place, LAYOUT)
    one = root.is_file()
    folder = root.parent if one else root
    found = [_table(root)] if one else files(root, ".jsonl")
    if not found:
        raise wrong_folder(_NAME, root, LAYOUT)
    for file in found:
        raw = None
        for raw in rows(file, folder, _NAME):
            yield raw if isinstance(raw, SkippedRow) else _row(replace(raw, anywhere=one))
        if one and raw is None:
            raise SourceError(f"there are no rows in {file.name}; write one below its header for each picture.")


def unused_columns(file: Path) -> list[str]:
    """The columns of a CSV or TSV file that nothing is read from. Raises SourceError."""
    known = {name for names in NAMES.values() for name in names}
    return [name for name in columns(file) if name and name not in known] if _is_delimited(file) else []


def _table(file: Path) -> Path:
    """``file``, if it is of a kind that can be read and its header has what is needed. Raises SourceError."""
    if not file.name.lower().endswith(_KINDS):
        raise SourceError(f"{file.name} is no table; give one that ends in {', '.join(_KINDS[:3])}.")
    if _is_delimited(file):
        there = columns(file)
        for needed in NEEDED:
            if not set(NAMES[needed]) & set(there):
                raise SourceError(
                    f"{file.name} has no column {needed!r}; its first row names {', '.join(map(repr, there[:12]))}, and "
                    f"needs image, question and answer. {_nearest(needed, there)}".rstrip()
                )
    return file


def _nearest(needed: str, there: list[str]) -> str:
    near = get_close_matches(needed, there, n=1, cutoff=0.7)
    return f"Is it {near[0]!r}?" if near else ""


def _is_delimited(file: Path) -> bool:
    return file.name.lower().endswith(SUFFIXES)


def _row(raw: RawRow) -> SourceRow | SkippedRow:
    fields = {str(name).strip().lower(): value for name, value in raw.fields.items()}
    raw = replace(raw, fields=fields)
    options = options_of(_options(fields))
    family: Family = "mmmu" if options or text(fields, "family") == "mmmu" else "chartqa"
    try:
        answer = gold_of(_answer(fields), options)
        image = image_loader(raw, *NAMES["image"])
    except RowProblem as problem:
        return SkippedRow(_NAME, raw.where, str(problem), problem.place)
    return SourceRow(
        source=_NAME,
        row=raw.where,
        family=family,
        question=text(fields, *NAMES["question"]),
        answer=answer,
        image=image,
        options=options,
        subject=text(fields, *NAMES["group"]),
        subfield=text(fields, "subfield"),
        passage=text(fields, "passage"),
        conflict=text(fields, "conflict"),
    )


def _options(fields: Fields) -> object:
    """The options; in a table's cell they may stand with bars between them."""
    given = fields.get("options")
    if isinstance(given, str) and "|" in given and not given.lstrip().startswith(("[", "{")):
        return [option.strip() for option in given.split("|")]
    return given


def _answer(fields: Fields) -> str:
    """The answer's text; true and false answer a question with Yes and No."""
    given = {name: fields.get(name) for name in NAMES["answer"]}
    return text({name: _YES_NO[value] if isinstance(value, bool) else value for name, value in given.items()}, *given)
