"""Forest plots drawn with characters."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from app.tui.widgets.forest_plot import BETTER, UNDECIDED, WORSE, ForestRow, direction, forest_plot
from benchmarks.vocabulary import Estimate

ROWS = [
    ForestRow("aligned", Estimate(0.0, 0.0, 0.0, 6)),
    ForestRow("image-correct", Estimate(-0.125, -0.30, -0.052, 6)),
    ForestRow("text-correct", Estimate(0.05, -0.1, 0.2, 6)),
    ForestRow("both-wrong", Estimate(0.31, 0.1, 0.42, 6)),
    ForestRow("image-only", Estimate(None, reason="no answer")),
    ForestRow("text-only", Estimate(0.03, n=1)),
]


def test_point_interval_and_zero_line_stand_where_the_values_are() -> None:
    assert [line.plain.rstrip() for line in forest_plot(ROWS, 77)] == [
        "                 -50 worse        0       better +50",
        "  aligned                         ○                      0.0 [0.0, 0.0]",
        "▼ image-correct         ├─────●─┤ │                    -12.5 [-30.0, -5.2]",
        "  text-correct                 ├──┼─○────┤              +5.0 [-10.0, +20.0]",
        "▲ both-wrong                      │  ├───────●──┤      +31.0 [+10.0, +42.0]",
        "  image-only                      │                      n/a",
        "  text-only                       │○                    +3.0",
    ]


@pytest.mark.parametrize("width", [4, 20, 40, 56, 57, 76, 117, 196])
def test_lines_fit_any_width(width: int) -> None:
    hostile = [*ROWS, ForestRow("[red]\x1b]52;c;x\x07 漢字漢字漢字", Estimate(1.0, -1.0, 1.0, 3))]
    lines = forest_plot(hostile, width)
    assert all(cell_len(line.plain) <= width for line in lines)
    assert not any("\x1b" in line.plain for line in lines)
    if width >= 40:
        assert "-12.5 [-30.0, -5.2]" in lines[-6].plain


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.01, 0.2, BETTER), (-0.2, -0.01, WORSE), (-0.1, 0.1, UNDECIDED), (0.0, 0.2, UNDECIDED), (None, None, UNDECIDED)],
)
def test_a_glyph_and_bold_type_only_where_the_interval_excludes_0(
    low: float | None, high: float | None, expected: object
) -> None:
    assert direction(Estimate(0.05, low, high, 9)) == expected


def test_no_rows_give_no_lines() -> None:
    assert forest_plot([], 80) == []
