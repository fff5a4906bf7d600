"""Names and row type of CrossCheck-Bench's data sources."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample
from benchmarks.rows.files import Loader

ROWS = "rows"
PRODUCTS = "products"
PRODUCTS_FIGURE_8 = "products-figure-8"
"""The same folders, with options and answers as in Figure 8, which can in part be had without looking."""

SOURCE_NAMES = (PRODUCTS, PRODUCTS_FIGURE_8, ROWS)


@dataclass(frozen=True, slots=True)
class CrossCheckSourceRow:
    """A sample from a source: ``row`` is its place for a reader, ``frames`` load its pictures' bytes in order."""

    row: str
    sample: CrossCheckSample
    frames: tuple[Loader, ...]
