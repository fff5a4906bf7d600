"""The tables of a run, or of several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from app.report.tables.latex_tables import to_latex
from app.report.tables.paper_rows import without_published
from app.report.tables.run_tables import tables_of
from app.report.tables.table_rendering import to_csv, to_markdown
from app.tui.screens.tables_screen import TablesScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.dialogs import Confirm
from app.tui.widgets.result_table import ResultTable
from benchmarks.vocabulary import Verdict
from tests.support.runs import instances
from tests.support.tui_computed import mixed, press, three_runs, until_computed, until_settled, visit
from tests.support.tui_stage import BOTH, SIZES, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_tables_of_finished_and_unfinished_runs(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    runs = three_runs(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", runs)
        await until_settled(pilot)
        await snapshot(app, "tables")
        assert "running 20/72 so far" in screen_text(app)
        assert "[." not in screen_text(app)  # the table does not fit with its intervals
        assert "i shows intervals" in screen_text(app)
        await press(pilot, "p", "i")
        text = screen_text(app)
        assert "(paper)" not in text
        assert "[." in text
        await until_settled(pilot)
        await snapshot(app, "tables-own")
        await press(pilot, "i", "t", "t")
        await until_settled(pilot)
        await snapshot(app, "tables-labels")
        await press(pilot, "right", "right", "right")
        assert "policy:always-image" in screen_text(app)  # the first column stays

    drive(stage.app(), script, size)


@pytest.mark.parametrize("size", BOTH)
def test_a_run_without_an_answer(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    run = stage.run("nothing-yet", state="planned", done=0)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", (run,))
        await until_settled(pilot)
        await snapshot(app, "tables-empty")

    drive(stage.app(), script, size)


def test_every_table_is_there_with_every_figure_of_the_command_line(stage: Stage) -> None:
    runs = three_runs(stage)
    tables = tables_of(runs)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", runs)
        screen = app.screen
        assert isinstance(screen, TablesScreen)
        assert screen.tables == tables
        shown = screen.query_one(ResultTable)
        for table in tables:
            assert shown.table == table
            await press(pilot, "p")
            assert shown.table == without_published(table)
            await press(pilot, "p", "t")
        assert screen.place == 0
        await press(pilot, "l", "down", "down", "enter")
        assert shown.table == tables[2]
        await press(pilot, "T")
        assert shown.table == tables[1]

    drive(stage.app(), script)


def test_a_table_alone_is_copied_or_written_in_few_keys(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = three_runs(stage)[:1]
    main, by_type = tables_of(runs)[:2]
    copied: list[str] = []
    monkeypatch.setattr(RashomonApp, "copy_to_clipboard", lambda app, text: copied.append(text))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", runs)
        await press(pilot, "y", "enter", "y", "down", "enter", "t", "y", "down", "down", "enter", "y", "escape")
        assert copied == [to_latex(main), to_markdown(main), to_csv(by_type)]
        out = tmp_path / "export" / runs[0].name
        await press(pilot, "T", "p", "y", *["down"] * 3, "enter")
        await until(pilot, (out / "main.tex").exists)
        own = without_published(main)
        assert (out / "main.tex").read_text("utf-8") == to_latex(own)  # as on display
        (out / "main.tex").write_text("edited", "utf-8")
        await press(pilot, "y", *["down"] * 3, "enter")
        assert isinstance(app.screen, Confirm)
        await press(pilot, "escape")
        assert (out / "main.tex").read_text("utf-8") == "edited"
        await press(pilot, "y", *["down"] * 5, "enter")
        await until(pilot, (out / "main.csv").exists)
        assert len(copied) == 3

    drive(stage.app(), script)


@pytest.mark.slow
def test_intervals_are_shown_as_soon_as_the_table_fits_with_them(stage: Stage) -> None:
    runs = three_runs(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", runs)
        assert "[." not in screen_text(app)
        await pilot.resize_terminal(320, 40)
        await until(pilot, lambda: "[." in screen_text(app))
        await press(pilot, "i")
        assert "[." not in screen_text(app)
        await pilot.resize_terminal(80, 24)
        await press(pilot, "i")
        await until(pilot, lambda: "[." in screen_text(app))

    drive(stage.app(), script)


def test_a_click_on_a_name_shows_its_table(stage: Stage) -> None:
    runs = three_runs(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", runs)
        await pilot.click(offset=(screen_text(app).splitlines()[1].index("gap"), 1))
        await until(pilot, lambda: " 4 of " in screen_text(app))
        await pilot.resize_terminal(40, 10)
        await press(pilot, "T", "T", "T", "T")
        screen = app.screen
        assert isinstance(screen, TablesScreen)
        last = screen.tables[-1].name
        await until(pilot, lambda: last in screen_text(app).splitlines()[1])  # the names scroll

    drive(stage.app(), script)


@pytest.mark.slow
def test_rows_of_one_run_come_below_its_name(stage: Stage) -> None:
    runs = three_runs(stage)[:2]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", runs)
        await press(pilot, "t", "t", "p")  # a row for each run and condition
        screen = app.screen
        assert isinstance(screen, TablesScreen)
        assert screen.tables[2].rows[0][0] == "policy:always-image / aligned"
        lines = [line.partition("│ ")[2] for line in screen_text(app).splitlines()]
        place = next(number for number, line in enumerate(lines) if line.startswith("policy:always-image "))
        assert lines[place + 1].startswith("  aligned ")

    drive(stage.app(), script)


def test_another_judges_labels_are_chosen_and_kept(stage: Stage) -> None:
    run = stage.run("judged", asked=instances(4), answering=mixed(0))
    from app.store.run_store import RunStore

    with RunStore.open(run) as store:
        stored = store.answer_of("factual-0000/aligned")
        assert stored is not None
        store.add_verdicts([(*stored, Verdict("human:ann", "labelled", "NEITHER"))])

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", (run,))
        await press(pilot, "w")
        assert "majority(human:ann, match@4)" in screen_text(app)
        await press(pilot, "down", "enter")
        assert "Labels by human:ann" in screen_text(app)
        screen = app.screen
        assert isinstance(screen, TablesScreen)
        assert screen.tables == tables_of((run,), judge="human:ann")

    drive(stage.app(), script)


def test_results_of_an_active_run_say_so_and_are_refreshed_by_a_key(stage: Stage) -> None:
    asked = instances(6)
    run = stage.run("going", asked=asked, answering=mixed(0), state="running", done=6)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", (run,))
        assert "r refreshes" not in screen_text(app)
        screen = app.screen
        assert isinstance(screen, TablesScreen)
        before = screen.tables
        stage.answer(run, asked[6:18], mixed(0))
        await until(pilot, lambda: "r refreshes" in screen_text(app))
        assert screen.tables is before
        await press(pilot, "r")
        assert "18/36 so far" in screen_text(app)
        assert "r refreshes" not in screen_text(app)
        assert screen.tables == tables_of((run,))

    drive(stage.app(), script)


def test_runs_of_two_benchmarks_are_refused_in_a_sentence(stage: Stage, tmp_path: Path) -> None:
    runs = (stage.run("one"), stage.run("two", benchmark="clash", done=0))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        for name in ("tables", "compare"):
            app.open_screen(name, runs)
            await until(pilot, lambda: "these runs are of several benchmarks" in screen_text(app))
            await until_computed(pilot)
            await press(pilot, "t", "p", "i", "l", "m", "escape")  # nothing of it does harm
        assert app.is_running

    drive(stage.app(), script)
