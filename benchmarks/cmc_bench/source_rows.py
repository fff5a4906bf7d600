"""Rows of the user's own: images, and a file of questions and answers beside them."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.cmc_bench.source import Family, Row, folder_of, wrong_folder
from benchmarks.cmc_bench.source_mmmu import gold_of, options_of
from benchmarks.files import Fields, RawRow, RowProblem, Skipped, files, image_loader, rows, text

LAYOUT = 'a folder with rows.jsonl, one {"image": "file.png", "question": ..., "answer": ...} a line, and the images'
_NAME = "rows"
_YES_NO = {True: "Yes", False: "No"}


def read(place: str) -> Iterator[Row | Skipped]:
    """The rows in every .jsonl file of a folder, or in one such file. Raises SourceError."""
    root = folder_of(_NAME, place, LAYOUT)
    folder = root.parent if root.is_file() else root
    found = [root] if root.is_file() else files(root, ".jsonl")
    if not found:
        raise wrong_folder(_NAME, root, LAYOUT)
    for file in found:
        for raw in rows(file, folder, _NAME):
            yield raw if isinstance(raw, Skipped) else _row(raw)


def _row(raw: RawRow) -> Row | Skipped:
    options = options_of(raw.fields.get("options"))
    family: Family = "mmmu" if options or text(raw.fields, "family") == "mmmu" else "chartqa"
    try:
        answer = gold_of(_answer(raw.fields), options)
        image = image_loader(raw, "image", "image_1")
    except RowProblem as problem:
        return Skipped(_NAME, raw.where, str(problem))
    return Row(
        source=_NAME,
        row=raw.where,
        family=family,
        question=text(raw.fields, "question", "query"),
        answer=answer,
        image=image,
        options=options,
        subject=text(raw.fields, "group", "subject"),
        subfield=text(raw.fields, "subfield"),
    )


def _answer(fields: Fields) -> str:
    """The answer's text; true and false answer a question with Yes and No."""
    given = {name: fields.get(name) for name in ("answer", "label")}
    return text({name: _YES_NO[value] if isinstance(value, bool) else value for name, value in given.items()}, *given)
