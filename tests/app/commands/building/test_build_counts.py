"""`rashomon build`: how many rows, and examples of a condition, are left out of how many."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.support.command import ROOT, Rashomon
from tests.support.data.contra4 import PLAIN, row, write_source


def test_left_out_rows_and_conditions_are_counted_of_all(tmp_path: Path) -> None:
    gone = [PLAIN[0], ("audio", "clotho", "gone.wav", "Wind"), ("video", "msrvtt_test", "gone", "Nothing")]
    rows = [row("one", PLAIN[:2]), row("two", gone), row("three", PLAIN[:2]), row("four", PLAIN[:2], answer="D")]
    source = write_source(tmp_path / "rows", rows)
    out = Rashomon(tmp_path).run("build", "contra4", "--source", f"published={source}").stdout
    assert re.findall(r"[0-9]+ of [0-9]+ \w+", out) == ["2 of 4 rows", "1 of 2 examples", "1 of 2 examples"]


def test_what_a_construction_leaves_out_is_counted_by_kind(tmp_path: Path) -> None:
    """Questions and lines of several files are not rows of one source, and no share of the questions that are built."""
    folder = tmp_path / "set"
    shutil.copytree(ROOT / "assets" / "products", folder)
    with (folder / "products.jsonl").open("a") as file:
        file.write('{"id": "x"}\n{"id": "y"}\n')
    with (folder / "labels" / "annotator-1.jsonl").open("a") as file:
        file.write('{"sample": "crosscheck-1", "verdict": "accept"}\n')
    out = Rashomon(tmp_path).run("build", "crosscheck-bench", "--source", f"products={folder}").stdout
    (line,) = [line for line in out.splitlines() if "left out" in line]
    assert not re.findall(r"\d of \d", line)
    kinds = ("4 questions", "2 lines of products.jsonl", "1 line of labels/annotator-1.jsonl")
    assert all(kind in line for kind in kinds)
