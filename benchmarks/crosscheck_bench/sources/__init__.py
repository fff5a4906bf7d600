"""Where samples come from: rows of the JSON layout, or folders of products that they are constructed from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.crosscheck_bench.sample import CrossCheckSample, sample
from benchmarks.rows.files import Loader, RawRow, RowProblem, SkippedRow, files, image_loader, rows
from benchmarks.rows.sources import folder_of, wrong_layout

ROWS = "rows"
PRODUCTS = "products"
NAMES = (PRODUCTS, ROWS)

LAYOUT = "a folder with rows.jsonl, one sample a line with its frames' file names, and the pictures"


@dataclass(frozen=True, slots=True)
class CrossCheckSourceRow:
    """A sample as a row has it: ``row`` is where a person finds it, ``frames`` give its pictures' bytes in order."""

    row: str
    sample: CrossCheckSample
    frames: tuple[Loader, ...]


def read(place: str) -> Iterator[CrossCheckSourceRow | SkippedRow]:
    """The samples in every .jsonl file of a folder, or in one such file. Raises SourceError where there is none."""
    root = folder_of(ROWS, place, LAYOUT)
    if root.is_file() and not root.name.endswith(".jsonl"):
        raise wrong_layout(ROWS, root, LAYOUT)
    folder = root.parent if root.is_file() else root
    found = [root] if root.is_file() else files(root, ".jsonl")
    if not found:
        raise wrong_layout(ROWS, root, LAYOUT)
    for file in found:
        for raw in rows(file, folder, ROWS):
            yield raw if isinstance(raw, SkippedRow) else _found(raw)


def _found(raw: RawRow) -> CrossCheckSourceRow | SkippedRow:
    try:
        named = raw.fields.get("frames")
        if not isinstance(named, list) or not named or not all(isinstance(name, str) for name in named):
            raise RowProblem("the frames are not a list of file names")
        made = sample(raw.fields, len(named), ROWS)
        loaders = tuple(image_loader(RawRow(raw.where, {"frame": name}, raw.folders), "frame") for name in named)
        return CrossCheckSourceRow(raw.where, made, loaders)
    except RowProblem as problem:
        return SkippedRow(ROWS, raw.where, str(problem))
