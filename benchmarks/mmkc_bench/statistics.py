"""Statistics of a build's examples, beside those of the paper (Table 1)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from benchmarks.mmkc_bench.constants import DATASETS, PAPER_COUNTS, PAPER_IMAGES
from benchmarks.mmkc_bench.example import Example


def statistics(examples: Sequence[Example]) -> bytes:
    """Return Table 1 as a CSV file: a row for each data set, with its examples and the different images of these."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("data set", "instances", "images", "instances in the paper", "images in the paper"))
    for dataset in DATASETS:
        members = [example for example in examples if example.dataset == dataset]
        images = {image for example in members for image in example.images}
        writer.writerow((dataset, len(members), len(images), PAPER_COUNTS[dataset], PAPER_IMAGES[dataset]))
    return file.getvalue().encode("utf-8")
