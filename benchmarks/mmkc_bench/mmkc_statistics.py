"""Statistics of a build's examples, beside those of the paper (Table 1)."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.mmkc_bench.mmkc_constants import DATASETS, PAPER_COUNTS, PAPER_IMAGES, PAPER_TYPES
from benchmarks.mmkc_bench.mmkc_example import Example
from benchmarks.untrusted.spreadsheet_formula_guard import csv_line


def statistics(examples: Sequence[Example]) -> bytes:
    """Return Table 1 as a CSV file: a row for each data set, with its kinds, its examples and the different images of these.

    The kinds of EK are its facts, as in the paper; those of the others are the kinds of entity that the source names, and empty
    if it names none. Data sets that the paper does not name come last.
    """
    columns = ("types", "instances", "images")
    lines = [csv_line(("data set", *columns, *(f"{column} in the paper" for column in columns)))]
    for dataset in (*DATASETS, *sorted({example.dataset for example in examples}.difference(DATASETS))):
        members = [example for example in examples if example.dataset == dataset]
        images = {image for example in members for image in example.images}
        types = {example.kind if dataset == "EK" else example.entity_type for example in members} - {""}
        of_paper = (PAPER_TYPES.get(dataset, ""), PAPER_COUNTS.get(dataset, ""), PAPER_IMAGES.get(dataset, ""))
        lines.append(csv_line((dataset, len(types) or "", len(members), len(images), *of_paper)))
    return "".join(lines).encode("utf-8")
