"""ChartQA (Masry et al., 2022): validation and test; training data is never read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow, existing_path, layout_error, requested_hub_id
from benchmarks.cmc_bench.sources.hub_rows import fetch_hub_files, read_hub_rows
from benchmarks.errors import SourceError
from benchmarks.rows.files import RawRow, SkippedRow, image_loader, list_files, read_rows, text_field
from benchmarks.rows.reader_types import RowProblem

LAYOUT = (
    "a folder with png/ and *_human.json or *_augmented.json, one holding val/ and test/ of those, one with "
    "val-*.parquet and test-*.parquet, one with rows in .jsonl beside their images, or one such file"
)
_NAME = "chartqa"
_ORIGINAL = ("_human.json", "_augmented.json")
_EVALUATION = ("val", "validation", "test")


def read(place: str) -> Iterator[SourceRow | SkippedRow]:
    """Yield the rows of ChartQA in a folder, a file or a Hub data set. Raises SourceError."""
    for raw in _raw_rows(place):
        yield raw if isinstance(raw, SkippedRow) else _row(raw)


def _raw_rows(place: str) -> Iterator[RawRow | SkippedRow]:
    if (data_set := requested_hub_id(_NAME, place)) is not None:
        splits = ("val", "test")
        fetched = fetch_hub_files(data_set, [f"data/{split}-*" for split in splits], LAYOUT)
        for split, files in zip(splits, fetched, strict=True):
            yield from read_hub_rows(files, split, LAYOUT)
        return
    root = existing_path(_NAME, place, LAYOUT)
    paths = _files(root)
    if not paths:
        raise layout_error(_NAME, root, LAYOUT)
    folder = root.parent if root.is_file() else root
    for file in paths:
        yield from read_rows(file, folder, _NAME, [file.parent / "png", folder / "png", file.parent, folder])


def _files(root: Path) -> list[Path]:
    if root.is_file():
        if _is_training(root):
            raise SourceError(f"{root} is training data, which is never read; give a file of validation or test.")
        return [root]
    splits = [root, *(root / name for name in _EVALUATION)]
    original = [file for folder in splits for file in list_files(folder, *_ORIGINAL)]
    hub = [file for folder in (root, root / "data") for file in list_files(folder, ".parquet")]
    for layout in (original, hub, list_files(root, ".jsonl")):
        evaluation = [file for file in layout if not _is_training(file)]
        if evaluation:
            return evaluation
    return []


def _is_training(file: Path) -> bool:
    return file.name.startswith("train")


def _row(raw: RawRow) -> SourceRow | SkippedRow:
    if text_field(raw.fields, "split") == "train":
        return SkippedRow(_NAME, raw.where, "the row is training data")
    labels = raw.fields.get("label")
    answer = text_field({"label": labels[0]}, "label") if isinstance(labels, list) and labels else ""
    try:
        image = image_loader(raw, "image", "imgname")
    except RowProblem as problem:
        return SkippedRow(_NAME, raw.where, str(problem))
    return SourceRow(
        source=_NAME,
        row=raw.where,
        family="chartqa",
        question=text_field(raw.fields, "query", "question"),
        answer=answer or text_field(raw.fields, "label", "answer"),
        image=image,
    )
