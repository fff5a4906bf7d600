"""Judges by name: which names are refused."""

from __future__ import annotations

import pytest

from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark
from judges.judge_registry import find_judge

NO_MODELS = ("policy:random", "imported:x", "person:x", "baseline:agree:x")


@pytest.mark.parametrize("name", [*NO_MODELS, "x" * 300, "x/" * 3000, "a\0b", "\ud800", "a\nb", "~nobody-at-all/x", ""])
def test_what_cannot_judge_is_refused(name: str) -> None:
    with pytest.raises(RashomonError) as caught:
        find_judge(name, get_benchmark("cmc-bench"))
    assert caught.value.exit_code == 2
