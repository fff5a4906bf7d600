"""Example rows of the pages, built as printed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from tests.docs.pages import fences
from tests.support.data.small import write_lines

SHOWN = {
    "docs/clash.md": "clash",
    "docs/crosscheck-bench.md": "crosscheck-bench",
}
"""Pages with complete example rows, and the benchmark whose source ``rows`` reads them."""


@pytest.mark.parametrize("page", SHOWN)
def test_example_rows_of_pages_are_accepted(page: str, tmp_path: Path) -> None:
    rows = list(rows_of_page(page))
    assert rows
    write_lines(tmp_path / "rows" / "rows.jsonl", rows)
    for number, picture in enumerate(dict.fromkeys(pictures(rows))):
        Image.new("RGB", (200, 200), (number * 37 % 256, 90, 200)).save(tmp_path / "rows" / picture)
    result = get_benchmark(SHOWN[page]).build([("rows", str(tmp_path / "rows"))], tmp_path / "out", BuildOptions())
    assert (result.path / "skipped.jsonl").read_text("utf-8") == ""
    assert len({row["id"].partition("/")[0] for row in result.rows()}) >= len(rows)


def rows_of_page(page: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of the page's blocks that contain nothing else."""
    for _, _, text in fences(page, "", "json"):
        rest = text.strip()
        while rest.startswith("{"):
            row, end = json.JSONDecoder().raw_decode(rest)
            yield row
            rest = rest[end:].strip()


def pictures(value: Any) -> Iterator[str]:
    """Yield every string within ``value`` that names a picture."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from pictures(item)
    elif isinstance(value, str) and re.fullmatch(r"[\w.-]+\.(png|jpg)", value):
        yield value
