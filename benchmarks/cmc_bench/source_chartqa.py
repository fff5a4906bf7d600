"""ChartQA (Masry et al., 2022): validation and test; training data is never read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.cmc_bench.files import RawRow, RowProblem, Skipped, files, image_loader, rows, text
from benchmarks.cmc_bench.hub import hub_rows
from benchmarks.cmc_bench.source import Row, folder_of, is_hub_id, wrong_folder

LAYOUT = (
    "a folder with png/ and *_human.json or *_augmented.json, one holding val/ and test/ of those, one with "
    "val-*.parquet and test-*.parquet, or one with rows in .jsonl beside their images"
)
_NAME = "chartqa"
_ORIGINAL = ("_human.json", "_augmented.json")
_EVALUATION = ("val", "validation", "test")


def read(place: str) -> Iterator[Row | Skipped]:
    """The rows of ChartQA in a folder, a file or a Hub data set. Raises SourceError."""
    for raw in _raw_rows(place):
        yield raw if isinstance(raw, Skipped) else _row(raw)


def _raw_rows(place: str) -> Iterator[RawRow | Skipped]:
    if is_hub_id(place):
        for split in ("val", "test"):
            yield from hub_rows(place, None, split, LAYOUT)
        return
    root = folder_of(_NAME, place, LAYOUT)
    if root.is_file():
        yield from rows(root, root.parent, _NAME)
        return
    found = [(file, [file.parent / "png", root / "png", file.parent, root]) for file in _files(root)]
    if not found:
        raise wrong_folder(_NAME, root, LAYOUT)
    for file, places in found:
        yield from rows(file, root, _NAME, places)


def _files(root: Path) -> list[Path]:
    splits = [root, *(root / name for name in _EVALUATION)]
    original = [file for folder in splits for file in files(folder, *_ORIGINAL)]
    hub = [file for folder in (root, root / "data") for file in files(folder, ".parquet")]
    for layout in (original, hub, files(root, ".jsonl")):
        kept = [file for file in layout if not file.name.startswith("train")]
        if kept:
            return kept
    return []


def _row(raw: RawRow) -> Row | Skipped:
    if text(raw.fields, "split") == "train":
        return Skipped(_NAME, raw.where, "the row is training data")
    labels = raw.fields.get("label")
    answer = text({"label": labels[0]}, "label") if isinstance(labels, list) and labels else ""
    try:
        image = image_loader(raw, "image", "imgname")
    except RowProblem as problem:
        return Skipped(_NAME, raw.where, str(problem))
    return Row(
        source=_NAME,
        row=raw.where,
        family="chartqa",
        question=text(raw.fields, "query", "question"),
        answer=answer or text(raw.fields, "label", "answer"),
        image=image,
    )
