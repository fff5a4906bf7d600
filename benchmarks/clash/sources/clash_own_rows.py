"""The user's own samples: a file of ClashSample's fields, one JSON object per line, with images beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.clash.sources.clash_source_row import ClashSourceRow, parse_sample
from benchmarks.rows.files import RawRow, ShownImage, SkippedRow, image_loader, list_files, read_rows
from benchmarks.rows.reader_types import RowProblem
from benchmarks.rows.sources import existing_path, layout_error

LAYOUT = "a folder with rows.jsonl, one sample a line with its image's file name, and the images"
_NAME = "rows"


def read(place: str, seed: int = 0) -> Iterator[ClashSourceRow | SkippedRow]:
    """Yield the samples in every .jsonl file of a folder, or in one such file. Raises SourceError."""
    root = existing_path(_NAME, place, LAYOUT)
    folder = root.parent if root.is_file() else root
    paths = [root] if root.is_file() and root.name.endswith(".jsonl") else list_files(root, ".jsonl")
    if not paths:
        raise layout_error(_NAME, root, LAYOUT)
    for file in paths:
        for raw in read_rows(file, folder, _NAME):
            yield raw if isinstance(raw, SkippedRow) else _found(raw)


def _found(raw: RawRow) -> ClashSourceRow | SkippedRow:
    fields: dict[str, Any] = {key: value for key, value in raw.fields.items() if key != "published_category"}
    if isinstance(fields.get("image_id"), int) and not isinstance(fields["image_id"], bool):
        fields["image_id"] = str(fields["image_id"])
    fields.setdefault("image_id", fields.get("image"))
    try:
        return ClashSourceRow(raw.where, parse_sample(fields, _NAME), ShownImage(image_loader(raw, "image")))
    except RowProblem as problem:
        return SkippedRow(_NAME, raw.where, str(problem))
