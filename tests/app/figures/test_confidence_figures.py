"""Figures of confidence: what is drawn, and what is only said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.figures.table_figures import draw_table
from benchmarks.vocabulary import Cell, Estimate, Table

FEW = Estimate(None, reason="29 examples; a calibration curve needs 30")


def reliability(*rows: tuple[str, tuple[Cell, ...]]) -> Table:
    return Table("reliability", "Right answers", ("confidence", "right", "answers"), rows, chart="reliability")


def points(line: Any) -> list[tuple[float, float]]:
    """Return the points of a line, whose own types do not know what was drawn."""
    return list(zip(line.get_xdata(), line.get_ydata(), strict=True))


@pytest.mark.parametrize("width", ["column", "page"])
def test_each_run_is_a_line_and_a_run_with_too_few_examples_is_named(width: str) -> None:
    table = reliability(
        ("m / bin 1", (Estimate(0.3), Estimate(0.2, 0.1, 0.4, 40), 40)),
        ("m / bin 2", (Estimate(0.9), Estimate(0.8, 0.7, 0.9, 40), 40)),
        ("few / all", (FEW, FEW, 29)),
    )
    figure = draw_table(table, width=width)
    assert figure is not None
    lines = [points(line) for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert lines == [[(0.3, 0.2), (0.9, 0.8)]]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["m (80 answers)", "few: fewer than 30 examples"]


def test_too_few_examples_give_no_figure() -> None:
    assert draw_table(reliability(("few / all", (FEW, FEW, 29))), width="column") is None


def test_mean_confidences_are_told_apart_near_one() -> None:
    rows = (
        ("bf16", (Estimate(0.999, 0.998, 1.0, 40), Estimate(0.9, 0.8, 0.95, 40))),
        ("4bit", (Estimate(1.0, 1.0, 1.0, 40), Estimate(None, reason="no answers"))),
    )
    table = Table("confidence", "Mean confidence", ("aligned", "both-wrong"), rows, chart="confidence")
    figure = draw_table(table, width="column")
    assert figure is not None
    axes = figure.axes[0]
    assert axes.get_yscale() == "logit"
    marked = {line.get_marker(): [y for _, y in points(line)] for line in axes.lines if line.get_marker() in ("o", "s")}
    assert marked["o"] == [0.999, 0.9]
    assert marked["s"] == [pytest.approx(1, abs=1e-4)]
    assert marked["s"][0] < 1, "1 has no place on a scale of log-odds"
    nothing = Table("confidence", "t", ("aligned",), (("m", (Estimate(None),)),), chart="confidence")
    assert draw_table(nothing, width="column") is None


def test_preference_stands_beside_labels() -> None:
    columns = ("log-odds, image : text", "prefers the image", "labelled IMAGE", "labelled TEXT", "answers")
    rows = tuple(
        (f"{run} / {condition}", (Estimate(odds, odds - 1, odds + 1), Estimate(0.5), Estimate(0.3), Estimate(0.6), 40))
        for run, odds in (("a", 2.0), ("b", -1.0))
        for condition in ("image-correct", "both-wrong")
    )
    figure = draw_table(Table("preference", "Preference", columns, rows, chart="preference"), width="column")
    assert figure is not None
    odds, labels = figure.axes
    assert sorted(x for line in odds.lines if line.get_marker() in ("o", "s") for x, _ in points(line)) == [
        -1,
        -1,
        2,
        2,
    ]
    assert [tick.get_text().replace("\n", "") for tick in odds.get_yticklabels()] == ["image-correct", "both-wrong"]
    assert len(labels.patches) == 8
    alone = Table("preference", "Preference", (*columns[:2], "answers"), tuple((n, (*c[:2], c[4])) for n, c in rows))
    without_labels = draw_table(replace(alone, chart="preference"), width="page")
    assert without_labels is not None
    assert len(without_labels.axes) == 1
    nothing = Table("preference", "t", ("log-odds", "answers"), (("m / c", (Estimate(None), 0)),), chart="preference")
    assert draw_table(nothing, width="column") is None
