"""Runs side by side."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from app.compare.recommend import recommend
from app.compare.tables import compare
from app.tui.app import RashomonApp
from app.tui.screens.compare import PANES, CompareScreen
from app.tui.screens.flips import FlippedScreen, SideBySideScreen
from app.tui.widgets.matrix import Matrix
from app.tui.widgets.result_table import ResultTable
from tests.support.runs import instances
from tests.support.tui_computed import FIRST, mixed, press, three_runs, until_settled, visit
from tests.support.tui_stage import BOTH, Stage, drive, screen_text
from tests.tui.conftest import Snapshot


def shown(app: RashomonApp) -> CompareScreen:
    screen = app.screen
    assert isinstance(screen, CompareScreen)
    return screen


@pytest.mark.parametrize("size", BOTH)
def test_every_part_of_a_comparison(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    runs = three_runs(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", runs)
        text = screen_text(app)
        assert "! policy:random is running: 52 of its 72 instances have no label" in text
        for pane in PANES:
            assert shown(app).pane == pane
            await until_settled(pilot)
            snapshot(app, f"compare-{pane}")
            await press(pilot, "t")
        assert shown(app).pane == "metrics"
        await press(pilot, "T", "left_square_bracket", "t", "t", "i")
        assert "~" not in screen_text(app).partition("Each run over")[0]
        figures_are_those_of_the_command_line(shown(app))

    def figures_are_those_of_the_command_line(screen: CompareScreen) -> None:
        tables = {table.name: table for table in compare(runs).tables}
        for name, pane in (("changes", "agreement"), ("cost", "cost")):
            assert screen.query_one(f"#{pane}", ResultTable).table == tables[name]
        figures = screen.query_one("#metrics", ResultTable).table
        assert figures is not None
        for number, (label, cells) in enumerate(tables["differences"].rows):
            run, figure = divmod(number, len(figures.rows))
            name, row = figures.rows[figure]
            assert label.endswith(f" / {name}")
            assert row[2 + 3 * run] == cells[2]
            assert row[3 + 3 * run] == cells[7]
        assert screen.query_one("#recommendation-table", ResultTable).table == recommend(runs).table
        matrix = screen.query_one(Matrix)
        for label, cells in tables["flips"].rows:
            name, _, was = label.partition(" / ")
            if name == "policy:always-text" and was != "all":
                row_counts = dict(zip(tables["flips"].columns, cells, strict=True))
                assert [matrix.count(was, now) for now in row_counts if now != "all"] == list(cells[:-1])

    drive(stage.app(), script, size)


@pytest.mark.parametrize("size", BOTH)
def test_from_a_cell_to_its_instances_to_both_answers_and_back(
    size: tuple[int, int], stage: Stage, snapshot: Snapshot
) -> None:
    runs = three_runs(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", runs)
        await press(pilot, "t", "enter")  # the cursor begins at the largest change
        listed = app.screen
        assert isinstance(listed, FlippedScreen)
        assert {(flip.was, flip.now) for flip in listed.flips} == {("TEXT", "IMAGE")}
        await until_settled(pilot)
        snapshot(app, "flipped")
        await press(pilot, "j", "enter")
        answers = app.screen
        assert isinstance(answers, SideBySideScreen)
        await until_settled(pilot)
        snapshot(app, "answers")
        before = screen_text(app)
        assert before.count("▌ policy:") == 3
        await press(pilot, "n")
        assert screen_text(app) != before
        await press(pilot, "N")
        assert screen_text(app) == before
        await press(pilot, "escape", "escape")
        matrix = shown(app).query_one(Matrix)
        assert matrix.has_focus
        await pilot.press(*["down"] * 4, *["right"] * 4)  # to the corner: all that changed
        await press(pilot, "enter")
        listed = app.screen
        assert isinstance(listed, FlippedScreen)
        counts = listed.pair.flips()
        assert len(listed.flips) == sum(n for (was, now), n in counts.items() if was != now) > 9
        await press(pilot, "escape", "b")
        assert "policy:always-image → policy:random" in screen_text(app).replace("\n", " ")
        await press(pilot, "enter")
        listed = app.screen
        assert isinstance(listed, FlippedScreen)
        assert listed.pair.second.label == "policy:random"

    drive(stage.app(), script, size)


def test_the_papers_rows_and_the_margin_are_chosen_by_keys(stage: Stage) -> None:
    runs = three_runs(stage)[:2]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", runs)
        await press(pilot, "b", "down", "space", "enter")
        paper = shown(app).query_one("#paper", ResultTable).table
        assert paper is not None
        assert paper.columns[-2:] == ("Qwen3-VL-4B (paper)", "LFM2.5-VL-1.6B (paper)")
        assert shown(app).pane == "paper"
        await press(pilot, "plus")
        assert shown(app).pane == "recommendation"
        assert "Margin: 5 points" in screen_text(app)
        await press(pilot, "minus", "minus")
        assert "Margin: 2 points" in screen_text(app)
        await press(pilot, "m", "backspace", "x")
        assert "Enter a number" in screen_text(app)
        await press(pilot, "enter", "backspace", "9", "9", "enter")
        assert "Margin: 99 points" in screen_text(app)
        take = shown(app).query_one("#recommendation-text", Static)
        for line in recommend(runs, margin=0.99).advice:
            assert line.split(",")[0] in str(take.content)

    drive(stage.app(), script)


@pytest.mark.parametrize("size", BOTH)
def test_one_run_alone_and_runs_that_share_nothing(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    first = stage.run(FIRST, asked=instances(4), answering=mixed(0))
    empty = stage.run("no-answer", state="failed", done=0, model="policy:random")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", (first,))
        assert "one run cannot be compared; mark another run as well." in screen_text(app)
        await press(pilot, "t", "b", "plus", "enter")
        await visit(pilot, app, "compare", (first, empty))
        await until_settled(pilot)
        snapshot(app, "compare-failed")
        await press(pilot, "T")
        text = str(shown(app).query_one("#recommendation-table", ResultTable).query_one(".caption", Static).content)
        assert text.startswith("no instance that counts for accuracy is labelled")

    drive(stage.app(), script, size)
