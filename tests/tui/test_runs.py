"""The list of runs, as somebody at the keys meets it."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from app.engine.run_control import is_paused
from app.tui.app import RashomonApp
from app.tui.screens.live import LiveScreen
from app.tui.screens.runs import RunsScreen
from app.tui.widgets.dialogs import Confirm, ErrorDialog
from app.tui.widgets.virtual_table import VirtualTable
from benchmarks.vocabulary import Generation
from tests.support.runs import instances, says
from tests.support.tui_stage import BOTH, SIZES, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot


def every_state(stage: Stage) -> None:
    """Return a run in every state, and one that cannot be read."""
    stage.run("a-planned", state="planned", done=0)
    stage.run("b-queued", state="queued", note="waiting for run d-running (process 17)", done=0)
    stage.run("c-loading", state="loading", done=0)
    stage.run("d-running", state="running", done=13, model="mlx-community/Qwen2.5-VL-7B-Instruct-4bit")
    stage.run("e-judging", state="judging")
    folder = stage.run("f-paused", state="running", done=9)
    (folder / "pause").touch()
    stage.die(stage.run("g-killed", state="running", done=11))
    stage.run("h-partial", done=20)
    stage.run("i-done", answering=lambda i: says("12" if "aligned" in i.id else "15")(i))
    failing = says("12")
    stage.run(
        "j-failed",
        state="failed",
        note="the key OPENAI_API_KEY is refused; set another.",
        done=7,
        answering=lambda i: (
            Generation(f"{i.id}#0", "", "error", error="refused") if "text-only" in i.id else failing(i)
        ),
    )
    stage.run("k-stopped", state="stopped", note="every condition's 95% interval is 0.34 wide or less", done=12)
    (stage.run("l-damaged") / "run.sqlite").write_bytes(b"this is no database" * 300)


@pytest.mark.parametrize("size", BOTH)
def test_an_empty_workspace(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        snapshot(app, "runs-empty")
        await pilot.press("enter", "space", "d", "R", "x", "p", "c", "e", "j", "G")
        assert isinstance(app.screen, RunsScreen), "with no run, no key does harm"

    drive(stage.app(), script, size)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_every_state_with_glyph_and_word(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    every_state(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        assert "unfinished" in screen_text(app), "unfinished runs are offered"
        app.clear_notifications()
        await until(pilot, lambda: "unfinished" not in screen_text(app))
        await pilot.press("space")
        snapshot.hide[str(stage.path)] = "WORKSPACE"
        snapshot(app, "runs-states")
        await pilot.press("k", "g", "j")
        snapshot(app, "runs-states-failed")
        await pilot.press("G", "enter")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog))
        assert "damaged" in screen_text(app)

    drive(stage.app(), script, size)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_quantisations_of_a_model_are_distinguishable(size: tuple[int, int], stage: Stage) -> None:
    kinds = ("4bit", "8bit", "bf16")
    for kind in kinds:
        name = f"cmc-bench-Qwen3-VL-4B-Instruct-{kind}-paper-0a1b2c3d"
        stage.run(name, model=f"mlx-community/Qwen3-VL-4B-Instruct-{kind}")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        rows = screen_text(app).splitlines()[2:5]
        for kind, row in zip(reversed(kinds), rows, strict=True):
            assert " cmc" in row
            assert "-0a1b2c3d" in row
            assert kind in row

    drive(stage.app(), script, size)


def test_filter_mark_and_open_by_keys(stage: Stage) -> None:
    every_state(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        table = app.screen.query_one(VirtualTable)
        await pilot.press("slash", *"qwen")
        await until(pilot, lambda: table.row_count == 1)
        await pilot.press("enter", "space", "escape")
        await until(pilot, lambda: table.row_count == 12)
        assert table.marks == {"d-running"}
        await pilot.press("slash", *"xyzzy")
        await until(pilot, lambda: "no run matches" in screen_text(app))
        await pilot.press("escape", "c")
        await until(pilot, lambda: "mark two or more runs" in screen_text(app))
        await pilot.press("slash", *"running", "enter", "enter")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        assert app.under_cursor[0].name == "d-running"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))

    drive(stage.app(), script)


def test_changes_are_displayed_and_the_cursor_stays_with_its_run(stage: Stage) -> None:
    asked = instances(4)
    running = stage.run("running", state="running", done=3, asked=asked)
    stage.run("other")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        table = app.screen.query_one(VirtualTable)
        await pilot.press("j")
        assert table.cursor_key == "running"
        stage.answer(running, asked[3:10], says("12"))
        await until(pilot, lambda: "10/24" in screen_text(app))
        stage.run("newer")
        await until(pilot, lambda: table.row_count == 3)
        assert table.cursor_key == "running"
        stage.die(running)
        await until(pilot, lambda: "ended without a message" in screen_text(app))

    drive(stage.app(), script)


def test_a_run_is_deleted_after_a_question_and_never_while_somebody_works_on_it(stage: Stage) -> None:
    busy = stage.run("busy", state="running", done=3)
    old, kept = stage.run("old"), stage.run("kept")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        table = app.screen.query_one(VirtualTable)
        await pilot.press("G", "d")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog))
        assert "stop with x first" in screen_text(app)
        await pilot.press("escape", "k", "d")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("enter")  # the focus is on No
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        assert old.exists()
        await pilot.press("d", "y")
        await until(pilot, lambda: table.row_count == 2)
        assert not old.exists()
        assert kept.exists()
        assert busy.exists()
        await pilot.press("u")
        await until(pilot, lambda: table.row_count == 3)
        assert old.exists()
        await pilot.press("k", "d", "y")
        await until(pilot, lambda: table.row_count == 2)

    drive(stage.app(), script)


def test_pausing_by_a_key_is_a_file_in_the_run(stage: Stage) -> None:
    folder = stage.run("running", state="running", done=3)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("p")
        await until(pilot, lambda: "‖ paused" in screen_text(app))
        assert is_paused(folder)
        await pilot.press("p")
        await until(pilot, lambda: "● running" in screen_text(app))
        assert not is_paused(folder)

    drive(stage.app(), script)
