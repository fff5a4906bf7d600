"""ChartQA (Masry et al., 2022): validation and test; training data is never read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.cmc_bench.sources import SourceRow, folder_of, hub_id, wrong_folder
from benchmarks.cmc_bench.sources.hub import hub_rows
from benchmarks.errors import SourceError
from benchmarks.rows.files import RawRow, RowProblem, SkippedRow, files, image_loader, rows, text

LAYOUT = (
    "a folder with png/ and *_human.json or *_augmented.json, one holding val/ and test/ of those, one with "
    "val-*.parquet and test-*.parquet, one with rows in .jsonl beside their images, or one such file"
)
_NAME = "chartqa"
_ORIGINAL = ("_human.json", "_augmented.json")
_EVALUATION = ("val", "validation", "test")


def read(place: str) -> Iterator[SourceRow | SkippedRow]:
    """The rows of ChartQA in a folder, a file or a Hub data set. Raises SourceError."""
    for raw in _raw_rows(place):
        yield raw if isinstance(raw, SkippedRow) else _row(raw)


def _raw_rows(place: str) -> Iterator[RawRow | SkippedRow]:
    if (data_set := hub_id(_NAME, place)) is not None:
        for split in ("val", "test"):
            yield from hub_rows(data_set, None, split, f"data/{split}-*", LAYOUT)
        return
    root = folder_of(_NAME, place, LAYOUT)
    found = _files(root)
    if not found:
        raise wrong_folder(_NAME, root, LAYOUT)
    folder = root.parent if root.is_file() else root
    for file in found:
        yield from rows(file, folder, _NAME, [file.parent / "png", folder / "png", file.parent, folder])


def _files(root: Path) -> list[Path]:
    if root.is_file():
        if _is_training(root):
            raise SourceError(f"{root} is training data, which is never read; give a file of validation or test.")
        return [root]
    splits = [root, *(root / name for name in _EVALUATION)]
    original = [file for folder in splits for file in files(folder, *_ORIGINAL)]
    hub = [file for folder in (root, root / "data") for file in files(folder, ".parquet")]
    for layout in (original, hub, files(root, ".jsonl")):
        kept = [file for file in layout if not _is_training(file)]
        if kept:
            return kept
    return []


def _is_training(file: Path) -> bool:
    return file.name.startswith("train")


def _row(raw: RawRow) -> SourceRow | SkippedRow:
    if text(raw.fields, "split") == "train":
        return SkippedRow(_NAME, raw.where, "the row is training data")
    labels = raw.fields.get("label")
    answer = text({"label": labels[0]}, "label") if isinstance(labels, list) and labels else ""
    try:
        image = image_loader(raw, "image", "imgname")
    except RowProblem as problem:
        return SkippedRow(_NAME, raw.where, str(problem))
    return SourceRow(
        source=_NAME,
        row=raw.where,
        family="chartqa",
        question=text(raw.fields, "query", "question"),
        answer=answer or text(raw.fields, "label", "answer"),
        image=image,
    )
