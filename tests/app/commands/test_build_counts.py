"""`rashomon build`: how many rows, and examples of a condition, are left out of how many."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.command import Rashomon
from tests.support.data.contra4 import PLAIN, row, write_source


def test_left_out_rows_and_conditions_are_counted_of_all(tmp_path: Path) -> None:
    gone = [PLAIN[0], ("audio", "clotho", "gone.wav", "Wind"), ("video", "msrvtt_test", "gone", "Nothing")]
    rows = [row("one", PLAIN[:2]), row("two", gone), row("three", PLAIN[:2]), row("four", PLAIN[:2], answer="D")]
    source = write_source(tmp_path / "rows", rows)
    out = Rashomon(tmp_path).run("build", "contra4", "--source", f"published={source}").stdout
    assert re.findall(r"[0-9]+ of [0-9]+ \w+", out) == ["2 of 4 rows", "1 of 2 examples", "1 of 2 examples"]
