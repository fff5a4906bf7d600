"""Runs side by side."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from app.compare.comparison_tables import compare
from app.compare.differences.instance_comparison import flips, text_changes
from app.compare.fine_tuning.fine_tuning_verdict import verdict
from app.compare.recommend.recommendation import recommend
from app.store.run_store import RunStore
from app.tui.screens.compare_screen import PANES, CompareScreen
from app.tui.screens.comparison_overview import Overview
from app.tui.screens.flips_screen import FlippedScreen, SideBySideScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.count_matrix import Matrix
from app.tui.widgets.result_table import ResultTable
from app.tui.widgets.terminal_picture import Picture
from benchmarks.vocabulary import Generation, Instance
from tests.support.compared_runs import answered
from tests.support.demo import HeldOutSet
from tests.support.runs import instances, says
from tests.support.tui_computed import FIRST, build, mixed, press, three_runs, until_settled, visit
from tests.support.tui_stage import BOTH, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot


def shown(app: RashomonApp) -> CompareScreen:
    screen = app.screen
    assert isinstance(screen, CompareScreen)
    return screen


@pytest.mark.slow
@pytest.mark.parametrize("size", BOTH)
def test_every_part_of_a_comparison(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    runs = three_runs(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", runs)
        text = screen_text(app)
        assert "no model among these runs" in text
        advice = str(shown(app).query_one("#advice-text", Static).content)
        assert "! policy:random is running: 52 of its 72 instances have no label" in advice
        for pane in PANES:
            assert shown(app).pane == pane
            await until_settled(pilot)
            await snapshot(app, f"compare-{pane}")
            await press(pilot, "t")
        assert shown(app).pane == "overview"
        await press(pilot, "T", "left_square_bracket", "t", "t", "t")
        with_intervals = "[." in screen_text(app)
        assert ("i shows intervals" in screen_text(app)) is not with_intervals
        await press(pilot, "i")
        assert ("[." in screen_text(app)) is not with_intervals
        figures_are_those_of_the_command_line(shown(app))

    def figures_are_those_of_the_command_line(screen: CompareScreen) -> None:
        tables = {table.name: table for table in compare(runs).tables}
        for name, pane in (("changes", "agreement"), ("cost", "cost")):
            assert screen.query_one(f"#{pane}", ResultTable).table == tables[name]
        figures = screen.query_one("#metrics", ResultTable).table
        assert figures is not None
        metrics = len(tables["values"].columns)
        for part, own in (("differences", figures.rows[:metrics]), ("abstention-differences", figures.rows[metrics:])):
            for number, (label, cells) in enumerate(tables[part].rows):
                run, figure = divmod(number, len(own))
                name, row = own[figure]
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
        await press(pilot, "t", "t", "enter")  # the cursor begins at the largest change
        listed = app.screen
        assert isinstance(listed, FlippedScreen)
        assert {(flip.was, flip.now) for flip in listed.flips} == {("TEXT", "IMAGE")}
        await until_settled(pilot)
        await snapshot(app, "flipped")
        await press(pilot, "j", "enter")
        answers = app.screen
        assert isinstance(answers, SideBySideScreen)
        await until_settled(pilot)
        await snapshot(app, "answers")
        before = screen_text(app)
        assert before.count("─ policy:") == 3
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
        await press(pilot, "escape", "n")
        assert "policy:always-image → policy:random" in screen_text(app).replace("\n", " ")
        await press(pilot, "enter")
        listed = app.screen
        assert isinstance(listed, FlippedScreen)
        assert listed.pair.second.label == "policy:random"

    drive(stage.app(), script, size)


def two_models(stage: Stage, examples: int = 12) -> tuple[Path, ...]:
    """Create runs of two quantisations: the second one changes a third of the labels, and words others differently."""
    data, picture = build(stage)
    items = instances(examples, picture=picture)

    def wordy(instance: Instance) -> Generation:
        number = int(instance.group[-4:])
        if number % 3 == 0:
            return mixed(1)(instance)
        return (
            replace(mixed(0)(instance), text=f"It is {mixed(0)(instance).text}")
            if number % 3 == 1
            else mixed(0)(instance)
        )

    return (
        stage.run("model-bf16", asked=items, answering=mixed(0), data=data, model="demo/m-bf16", quantisation="bf16"),
        stage.run("model-4bit", asked=items, answering=wordy, data=data, model="demo/m-4bit"),
    )


@pytest.mark.parametrize("size", BOTH)
def test_one_screen_says_which_is_better_and_where_they_differ(
    size: tuple[int, int], stage: Stage, snapshot: Snapshot
) -> None:
    runs = two_models(stage)
    pair = compare(runs).pairs[0]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", runs)
        overview = shown(app).query_one(Overview)
        await until(pilot, lambda: "How many trams run?" in screen_text(app))
        await until_settled(pilot)
        await snapshot(app, "compare-two")
        text = screen_text(app)
        advice = str(overview.query_one("#advice-text", Static).content)
        assert advice.splitlines()[0] == recommend(runs).summary
        assert all(f"{condition} " in text for condition in pair.label_metrics.conditions)
        assert list(overview.changes) == flips(pair)
        await press(pilot, "c")
        await until(pilot, lambda: len(overview.changes) > len(flips(pair)))
        ids = [change.instance for change in overview.changes]
        assert ids == [name for name in pair.shared if name in set(ids)]
        assert set(ids) == {change.instance for change in (*flips(pair), *text_changes(pair))}
        await press(pilot, "f")
        assert list(overview.changes) == text_changes(pair)
        await press(pilot, "c")  # one kind is always listed
        assert list(overview.changes) == flips(pair)
        await press(pilot, "c", "f", "j")
        both = overview.detail.text
        if size[0] >= 100:  # beside the list; a narrower terminal shows them on Enter
            await until(pilot, lambda: "It is" in str(both.content))
            assert overview.query_one(Picture).media is not None
            assert screen_text(app).count("(baseline)") > 1
        await press(pilot, "enter")
        answers = app.screen
        assert isinstance(answers, SideBySideScreen)
        await until(pilot, lambda: "It is" in screen_text(app) and "▀▀" in screen_text(app))
        await press(pilot, "n", "N", "escape")
        assert shown(app).pane == "overview"

    drive(stage.app(), script, size)


def test_a_fine_tuned_model_is_judged_against_its_base(stage: Stage) -> None:
    data, _ = build(stage)
    items = instances(40)
    answers = {"image-correct": "12", "text-correct": "12", "both-wrong": "cannot be determined"}

    def learnt(instance: Instance) -> Generation:
        return says(answers.get(instance.condition, "12"))(instance)

    runs = tuple(
        stage.run(name, asked=items, answering=answering, data=data, model=model)
        for name, model, answering in (("base", "org/m", mixed(0)), ("tuned", "org/m+/x/fine", learnt))
    )
    for folder, digests in zip(runs, ({}, {"adapter digest": "b" * 64}), strict=True):
        with RunStore.open(folder) as store:
            store.set_meta("identity", {**store.meta("identity"), "weights digest": "a" * 64, **digests})
    (tuning,) = compare(runs).fine_tunings

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", runs)
        assert str(shown(app).query_one("#advice-text", Static).content).splitlines()[0] == verdict(tuning).short
        reasons = str(shown(app).query_one("#recommendation-text", Static).content)
        assert reasons.splitlines()[0] == verdict(tuning).text

    drive(stage.app(), script)


@pytest.mark.slow
def test_the_baseline_and_the_pair_are_chosen_by_keys(stage: Stage) -> None:
    runs = three_runs(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", runs)
        assert "Benchmark accuracy: policy:always-text minus policy:always-image" in screen_text(app)
        await press(pilot, "n")
        assert "Benchmark accuracy: policy:random minus policy:always-image" in screen_text(app)
        await press(pilot, "n", "b", "down", "down", "enter")
        await until(pilot, lambda: "Benchmark accuracy: policy:always-image minus policy:random" in screen_text(app))
        assert [folder.name for folder in shown(app).folders] == [runs[2].name, runs[0].name, runs[1].name]
        await visit(pilot, app, "compare", runs[:2])
        await press(pilot, "b")  # of two runs there is nothing to choose
        await until(
            pilot, lambda: "Benchmark accuracy: policy:always-image minus policy:always-text" in screen_text(app)
        )
        assert f"{runs[1].name} (baseline)" in screen_text(app)
        assert "n Next run" not in screen_text(app)
        await press(pilot, "n")
        assert app.is_running

    drive(stage.app(), script)


@pytest.mark.slow
def test_a_model_is_compared_before_a_policy(stage: Stage) -> None:
    first, second = two_models(stage, examples=3)
    policy = stage.run("policy", asked=instances(3), answering=mixed(2))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", (first, policy, second))
        assert "Benchmark accuracy: m-4bit minus m-bf16" in screen_text(app)
        await press(pilot, "n")
        assert "Benchmark accuracy: policy:always-image minus m-bf16" in screen_text(app)

    drive(stage.app(), script)


def test_a_click_on_a_title_shows_its_pane_and_a_run_that_is_gone_is_named(stage: Stage) -> None:
    runs = two_models(stage, examples=3)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", runs)
        await until(pilot, lambda: "How many trams run?" in screen_text(app))
        shutil.rmtree(runs[1])
        await press(pilot, "j")
        message = shown(app).query_one(Overview).detail.text
        await until(pilot, lambda: runs[1].name in str(message.content))
        assert isinstance(app.screen, CompareScreen)
        line = screen_text(app).splitlines()[1]
        await pilot.click(offset=(line.index("Agreement"), 1))
        await pilot.pause()
        assert shown(app).pane == "agreement"

    drive(stage.app(), script)


@pytest.mark.slow
def test_the_papers_rows_and_the_margin_are_chosen_by_keys(stage: Stage) -> None:
    runs = three_runs(stage)[:2]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", runs)
        await press(pilot, "p", "down", "space", "enter")
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


@pytest.mark.slow
def test_costs_and_limits_are_typed(stage: Stage) -> None:
    models = [stage.run(f"m{i}", asked=instances(6), answering=mixed(i), model=f"org/m{i}") for i in (0, 1)]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", tuple(models))
        await press(pilot, "u", *"wrong=-1")
        assert "give a number from 0" in screen_text(app)
        await press(pilot, *["backspace"] * 2, *"2,needless=0.5,memory=9", "enter")
        await until_settled(pilot)
        assert shown(app).pane == "recommendation"
        table = shown(app).query_one("#recommendation-table", ResultTable).table
        assert table is not None
        assert table.columns[0] == "utility"
        ratios = shown(app).query_one("#ratios", ResultTable).table
        assert ratios is not None
        assert ratios.name == "cost-ratios"

    drive(stage.app(), script)


@pytest.mark.parametrize("size", BOTH)
def test_one_run_alone_and_runs_that_share_nothing(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    first = stage.run(FIRST, asked=instances(4), answering=mixed(0))
    empty = stage.run("no-answer", state="failed", done=0, model="policy:random")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", (first,))
        assert "one run cannot be compared; mark another run as well." in screen_text(app)
        await press(pilot, "t", "b", "n", "f", "c", "f", "p", "y", "plus", "enter")
        await visit(pilot, app, "compare", (first, empty))
        await until_settled(pilot)
        await snapshot(app, "compare-failed")
        await press(pilot, "T")
        text = str(shown(app).query_one("#recommendation-table", ResultTable).query_one(".message", Static).content)
        assert text.startswith("no instance that counts for accuracy is labelled")

    drive(stage.app(), script, size)


def test_runs_of_two_protocols_have_a_pane_of_gain_and_cost(stage: Stage, charts: HeldOutSet) -> None:
    data = str(charts.build.path)
    stage.workspace.make()
    for protocol in ("direct", "verify"):
        answered(stage.workspace, protocol, "policy:always-text", 2, protocol=protocol, data=data)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "compare", tuple(stage.workspace.runs_folder / name for name in ("direct", "verify")))
        screen = shown(app)
        assert "remedies" in screen.panes
        while screen.pane != "remedies":
            await press(pilot, "t")
        assert "Gain and cost of protocols" in screen_text(app)
        assert "verify" in screen_text(app)

    drive(stage.app(), script, (80, 24))
