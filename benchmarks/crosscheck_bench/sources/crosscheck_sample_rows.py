"""Samples in the JSON layout: .jsonl files next to their pictures."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.crosscheck_bench.crosscheck_sample import parse_sample
from benchmarks.crosscheck_bench.sources.crosscheck_source_row import ROWS, CrossCheckSourceRow
from benchmarks.rows.files import RawRow, SkippedRow, image_loader, list_files, read_rows
from benchmarks.rows.reader_types import RowProblem
from benchmarks.rows.sources import existing_path, layout_error

LAYOUT = "a folder with rows.jsonl, one sample a line with its frames' file names, and the pictures"


def read_samples(place: str) -> Iterator[CrossCheckSourceRow | SkippedRow]:
    """Yield the samples in every .jsonl file of a folder, or in one such file. Raises SourceError if there is none."""
    root = existing_path(ROWS, place, LAYOUT)
    if root.is_file() and not root.name.endswith(".jsonl"):
        raise layout_error(ROWS, root, LAYOUT)
    folder = root.parent if root.is_file() else root
    row_files = [root] if root.is_file() else list_files(root, ".jsonl")
    if not row_files:
        raise layout_error(ROWS, root, LAYOUT)
    for file in row_files:
        for raw in read_rows(file, folder, ROWS):
            yield raw if isinstance(raw, SkippedRow) else _source_row(raw)


def _source_row(raw: RawRow) -> CrossCheckSourceRow | SkippedRow:
    try:
        names = raw.fields.get("frames")
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise RowProblem("the frames are not a list of file names")
        sample = parse_sample(raw.fields, len(names), ROWS)
        loaders = tuple(image_loader(RawRow(raw.where, {"frame": name}, raw.folders), "frame") for name in names)
        return CrossCheckSourceRow(raw.where, sample, loaders)
    except RowProblem as problem:
        return SkippedRow(ROWS, raw.where, str(problem))
