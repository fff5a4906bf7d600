"""Statistics of a build's examples, beside those of the paper (Table 1)."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.mmkc_bench.constants import DATASETS, PAPER_COUNTS, PAPER_IMAGES
from benchmarks.mmkc_bench.example import Example
from benchmarks.rows.spreadsheet_formulas import csv_line


def statistics(examples: Sequence[Example]) -> bytes:
    """Return Table 1 as a CSV file: a row for each data set, with its examples and the different images of these."""
    lines = [csv_line(("data set", "instances", "images", "instances in the paper", "images in the paper"))]
    for dataset in DATASETS:
        members = [example for example in examples if example.dataset == dataset]
        images = {image for example in members for image in example.images}
        lines.append(csv_line((dataset, len(members), len(images), PAPER_COUNTS[dataset], PAPER_IMAGES[dataset])))
    return "".join(lines).encode("utf-8")
