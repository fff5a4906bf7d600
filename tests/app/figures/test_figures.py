"""Figures: what is drawn is what the table says, and it stays readable in greyscale and in a paper's column."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from typing import Any

import pytest
from PIL import Image

from app.figures.distribution_figures import Panel, count_panels, sunburst
from app.figures.figure_drawing import Bar, Point, bars, intervals, scatter, stacked
from app.figures.figure_style import INKS, inches, ink, to_bytes
from app.figures.heat_map import flips, heat
from app.figures.table_figures import draw_quality_and_memory, draw_table
from benchmarks.errors import SpecError
from benchmarks.vocabulary import Estimate, Table

LABELS = ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN")
QWEN = (372, 350, 13, 107, 100)
"""Labels of 942 image-correct answers: section 5.3 gives the first three, and 0.106 for ABSTAIN; the rest is NEITHER."""

TABLE = Table(
    "labels",
    "Label proportions",
    LABELS,
    (
        ("Qwen3-VL-4B / image-correct", tuple(Estimate(count / 942, n=942) for count in QWEN)),
        ("Qwen3-VL-4B / both-wrong", tuple(Estimate(None, reason="nothing") for _ in LABELS)),
    ),
    chart="stacked",
)


def lightness(colour: str) -> float:
    """L* of CIE Lab."""
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    ]
    luminance = sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return float(116 * luminance ** (1 / 3) - 16)


def axes_of(figure: Any) -> Any:
    """The axes of a figure, whose own types do not know what was drawn."""
    return figure.axes[0]


def texts(figure: Any) -> list[str]:
    return [text.get_text() for text in axes_of(figure).texts]


def test_inks_differ_without_colour() -> None:
    steps = [after - before for before, after in pairwise(lightness(item.fill) for item in INKS)]
    assert min(steps) > 14, "neighbours in a stacked bar must be told apart in greyscale"
    assert all(bool(a.hatch) != bool(b.hatch) for a, b in pairwise(INKS))
    assert all(abs(lightness(item.fill) - lightness(item.on)) > 40 for item in INKS), "figures on a bar can be read"
    assert len({(ink(number).fill, ink(number).hatch) for number in range(10)}) == 10


@pytest.mark.parametrize(("width", "pixels"), [("column", 990), ("page", 2070)])
def test_a_figure_is_as_wide_as_a_column_or_a_page(width: str, pixels: int) -> None:
    figure = draw_table(TABLE, width=width)
    assert figure is not None
    picture = Image.open(io.BytesIO(to_bytes(figure, "png")))
    assert picture.width == pixels, "at 300 dpi"
    assert inches(width) * 300 == pytest.approx(pixels)


def test_a_bar_is_as_long_as_its_share_and_a_bar_of_nothing_is_not_there() -> None:
    figure = draw_table(TABLE, width="column")
    assert figure is not None
    axes = axes_of(figure)
    drawn = [item for item in axes.patches if item.get_facecolor()[3]]
    assert [round(item.get_width() * 942) for item in drawn] == list(QWEN)
    assert [item.get_x() for item in drawn] == pytest.approx([sum(QWEN[:i]) / 942 for i in range(5)])
    assert [item.get_text() for item in axes.get_yticklabels()] == ["image-correct", "both-wrong"]
    assert texts(figure) == ["39", "37", "11", "11", "n/a"], "1% is too short to be written in"


def test_several_runs_stand_together_under_each_condition() -> None:
    shares = tuple(Estimate(0.2) for _ in LABELS)
    rows = tuple((f"{run} / {where}", shares) for run in ("A", "B") for where in ("aligned", "both-wrong"))
    figure = draw_table(Table("labels", "t", LABELS, rows, chart="stacked"), width="page")
    assert figure is not None
    assert [yticklabel.get_text() for yticklabel in axes_of(figure).get_yticklabels()] == ["A", "B", "A", "B"]
    assert [text for text in texts(figure) if not text.isdigit()] == ["aligned", "both-wrong"]


def test_shares_that_stand_one_under_the_other_become_a_bar_for_each_column() -> None:
    """MMKC-Bench's tables: a row for each setting and rate, whose rates sum to 1 in each column."""
    rates = {"OAR": (0.6, 0.5), "CAR": (0.3, 0.5), "IAR": (0.1, None)}
    rows = tuple(
        (f"Qwen / {setting} / {rate}", (*(Estimate(share) for share in shares), Estimate(None, reason="not asked")))
        for setting in ("Context-Memory", "Inter-Context")
        for rate, shares in rates.items()
    )
    figure = draw_table(Table("main", "t", ("ER", "EK", "VS"), rows, chart="turned"), width="column")
    axes = axes_of(figure)
    assert [yticklabel.get_text().replace("\n", " ") for yticklabel in axes.get_yticklabels()] == [
        f"{setting}, {column}" for setting in ("Context-Memory", "Inter-Context") for column in ("ER", "EK")
    ]
    assert texts(figure) == ["60", "30", "10", "50", "50"] * 2
    assert figure is not None
    assert [yticklabel.get_text() for yticklabel in figure.legends[0].get_texts()] == ["OAR", "CAR", "IAR"]
    nothing = Table("main", "t", ("VS",), tuple((label, cells[2:]) for label, cells in rows), chart="turned")
    assert draw_table(nothing, width="column") is None, "what is n/a throughout is no bar"


def test_bars_have_their_interval_or_one_deviation_and_na_is_said() -> None:
    series = [("m", [Estimate(0.5, 0.4, 0.6), Estimate(0.3, sd=0.05), Estimate(None, reason="none asked")])]
    figure = bars(series, ["Animals", "Food", "Sports"], title="t", width="column")
    axes = axes_of(figure)
    whiskers = {tuple(round(float(y), 3) for y in line.get_ydata()) for line in axes.lines}
    assert whiskers == {(0.4, 0.6), (0.25, 0.35)}
    assert [round(float(patch.get_height()), 3) for patch in axes.patches] == [0.5, 0.3]
    assert texts(figure) == ["n/a"]
    assert axes.get_ylim()[0] == 0, "a bar begins at 0"


def test_a_heat_map_stars_the_best_of_each_column_and_hatches_what_is_unknown() -> None:
    figure = heat([("a", [0.5, None]), ("b", [0.25, 0.75])], ["A1", "A2"], title="t", width="column", star=True)
    assert texts(figure) == ["50*", "n/a", "25", "75*"]
    assert [bool(patch.get_hatch()) for patch in axes_of(figure).patches] == [False, True, False, False]


@pytest.mark.parametrize("width", ["column", "page"])
def test_bars_of_counts_are_as_long_as_their_segments(width: str) -> None:
    rows = (("object / dog", (3, 1)), ("object / cat", (0, 2)), ("attribute / red", (5, 0)))
    figure = draw_table(Table("words", "t", ("before", "after"), rows, chart="counts"), width=width)
    assert figure is not None
    panels: dict[str, Any] = {axes.get_title(loc="left"): axes for axes in figure.axes}
    assert list(panels) == ["object", "attribute"]
    drawn = [round(bar.get_width()) for bar in panels["object"].patches if bar.get_facecolor()[3]]
    assert drawn == [3, 1, 0, 2]
    assert [text.get_text() for text in panels["object"].texts] == ["4", "2"]
    assert [tick.get_text() for tick in panels["object"].get_yticklabels()] == ["dog", "cat"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["before", "after"]


def test_one_segment_has_its_share_of_the_panel() -> None:
    rows = (("object / animals", (3,)), ("object / other", (1,)))
    figure = draw_table(Table("categories", "t", ("samples",), rows, chart="counts"), width="page")
    assert texts(figure) == ["3 (75%)", "1 (25%)"]
    assert figure is not None
    assert not figure.legends


def test_a_sunburst_has_a_ring_for_each_word_and_angles_by_count() -> None:
    rows = (("what is the", (600,)), ("what color is", (200,)), ("how many", (199,)), ("name it", (1,)))
    figure = draw_table(Table("questions", "t", ("questions",), rows, chart="sunburst"), width="page")
    axes = axes_of(figure)
    spans = sorted(round(wedge.theta2 - wedge.theta1, 2) for wedge in axes.patches)
    assert spans == sorted([288.0, 216.0, 72.0, 216.0, 72.0, 71.64, 71.64, 0.36])
    assert sorted(texts(figure)) == sorted(["what", "is", "the", "color", "is", "how", "many", "1,000"])
    assert figure is not None
    listed = figure.axes[1]
    assert [tick.get_text() for tick in listed.get_yticklabels()][:2] == ["what is the", "what color is"]
    assert listed.texts[0].get_text() == "600 (60%)"


def test_flips_show_the_counts_from_row_to_column() -> None:
    figure = flips([[5, 2], [0, 7]], ["IMAGE", "TEXT"], before="bf16", after="4bit", title="Flips", width="column")
    axes = axes_of(figure)
    assert texts(figure) == ["5", "2", "0", "7"]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("bf16", "4bit")


def test_quality_against_memory_leaves_out_what_has_no_memory_or_no_figure() -> None:
    rows = (
        ("bf16", (Estimate(0.6, 0.5, 0.7),)),
        ("4bit", (Estimate(0.5, 0.4, 0.6),)),
        ("remote", (Estimate(0.9, 0.8, 1.0),)),
        ("broken", (Estimate(None, reason="nothing"),)),
    )
    main = Table("main", "t", ("MFR",), rows)
    figure = draw_quality_and_memory(
        main, "MFR", {"bf16": 9 * 10**9, "4bit": 3 * 10**9, "broken": 10**9}, width="column"
    )
    assert figure is not None
    marks = {
        line.get_label(): float(line.get_xdata()[0]) for line in axes_of(figure).lines if line.get_marker() != "None"
    }
    assert marks == {"bf16": 9.0, "4bit": 3.0}
    assert draw_quality_and_memory(main, "MFR", {"bf16": 9 * 10**9}, width="column") is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "hostile"),
    [
        ("svg", "$\\frac{1}{0}$ $"),
        ("svg", "<script>alert(1)</script>"),
        ("svg", "\x1b[31m\u202e\ud800"),
        ("svg", ""),
        ("png", "日本語" * 40),
        ("pdf", "$\\frac{1}{0}$ \ud800"),
    ],
)
def test_hostile_names_are_drawn_as_text_in_every_format(form: str, hostile: str) -> None:
    drawn = [
        stacked([(hostile, [Bar(hostile, [0.5, None])])], [hostile, "b"], title=hostile, width="column"),
        scatter([Point(hostile, 1.0, Estimate(0.5, 0.4, 0.6))], x=hostile, y=hostile, title=hostile, width="page"),
        count_panels([Panel(hostile, [(hostile, [3, 1])])], [hostile, "b"], title=hostile, width="page"),
        sunburst({hostile: 3, "b": 1}, title=hostile, width="page"),
    ]
    for figure in drawn:
        whole = to_bytes(figure, form)
        assert len(whole) > 1000
        if form == "svg":
            names = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(whole).iter()}
            assert not names & {"script", "image", "foreignObject", "a"}
            assert not re.search(rb'href="(?!#)', whole), "nothing is loaded from elsewhere"


@pytest.mark.slow
def test_the_same_figure_gives_the_same_bytes() -> None:
    def once(form: str) -> bytes:
        figure = draw_table(TABLE, width="column")
        assert figure is not None
        return to_bytes(figure, form)

    assert all(once(form) == once(form) for form in ("png", "svg", "pdf"))


def test_drawing_leaves_matplotlib_as_it_was() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    to_bytes(flips([[1]], ["A"], before="a", after="b", title="t", width="column"), "png")
    assert dict(matplotlib.rcParams) == before


def test_an_unknown_width_is_told_with_the_nearest() -> None:
    with pytest.raises(SpecError, match="did you mean 'column'"):
        inches("columm")
    assert draw_table(Table("t", "t", ("a",), (("r", (Estimate(0.1),)),)), width="column") is None, (
        "the paper draws none"
    )


def test_intervals_have_a_point_each_no_line_between_them_and_names_that_do_not_overlap() -> None:
    name = "mlx-community/Some-Very-Long-Model-Name-{}-4bit"
    rows = [(name.format(i), Estimate(0.1 * i, 0.1 * i - 0.3, 0.1 * i + 0.3)) for i in range(-6, 6)]
    figure = intervals([*rows, ("in use", Estimate(None, reason="in use"))], x="lead", title="Models", width="column")
    figure.canvas.draw()
    axes = figure.axes[0]
    boxes = [text.get_window_extent() for text in axes.get_yticklabels()]
    assert not [1 for upper, lower in pairwise(boxes) if upper.overlaps(lower)]
    drawn: list[Any] = axes.lines[1:]
    points = [line for line in drawn if line.get_marker() == "o"]
    assert [len(line.get_xdata()) for line in points] == [1] * len(rows)
    assert all(len(set(line.get_ydata())) == 1 for line in drawn), "nothing joins two models"
    assert "in use" in axes.texts[0].get_text()
