"""Samples of the user's own: a file with Sample's fields, one JSON object a line, and the images beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.clash.sources import ClashSourceRow, sample
from benchmarks.rows.files import RawRow, RowProblem, SkippedRow, files, image_loader, rows
from benchmarks.rows.sources import folder_of, wrong_layout

LAYOUT = "a folder with rows.jsonl, one sample a line with its image's file name, and the images"
_NAME = "rows"


def read(place: str, seed: int = 0) -> Iterator[ClashSourceRow | SkippedRow]:
    """The samples in every .jsonl file of a folder, or in one such file. Raises SourceError."""
    root = folder_of(_NAME, place, LAYOUT)
    folder = root.parent if root.is_file() else root
    found = [root] if root.is_file() and root.name.endswith(".jsonl") else files(root, ".jsonl")
    if not found:
        raise wrong_layout(_NAME, root, LAYOUT)
    for file in found:
        for raw in rows(file, folder, _NAME):
            yield raw if isinstance(raw, SkippedRow) else _found(raw)


def _found(raw: RawRow) -> ClashSourceRow | SkippedRow:
    fields: dict[str, Any] = {key: value for key, value in raw.fields.items() if key != "published_category"}
    if isinstance(fields.get("image_id"), int) and not isinstance(fields["image_id"], bool):
        fields["image_id"] = str(fields["image_id"])
    fields.setdefault("image_id", fields.get("image"))
    try:
        return ClashSourceRow(raw.where, sample(fields, _NAME), image_loader(raw, "image"))
    except RowProblem as problem:
        return SkippedRow(_NAME, raw.where, str(problem))
