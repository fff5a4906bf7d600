"""The list of runs, as somebody at the keys meets it."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from app.engine.run_control import is_paused
from app.store.run_references import run_folder
from app.store.run_summary import RunSummary
from app.store.store_types import ConditionProgress
from app.store.workspace import DEMOS_FOLDER
from app.tui.screens.live_screen import LiveScreen
from app.tui.screens.own_rows_screen import OwnRowsScreen
from app.tui.screens.run_list import RunList
from app.tui.screens.runs_screen import RunsScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.dialogs import Confirm, ErrorDialog, TextDialog
from app.tui.widgets.virtual_table import VirtualTable
from app.tui.workspace_watcher import WatchedRun, WorkspaceSnapshot
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation
from tests.support.runs import instances, says
from tests.support.tui_stage import BOTH, SIZES, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot

CONFLICTS = get_benchmark("cmc-bench").conflicts


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
        await snapshot(app, "runs-empty")
        await pilot.press("enter", "space", "d", "R", "x", "p", "c", "e", "j", "G", "S", "I", "b", "r")
        assert isinstance(app.screen, RunsScreen), "with no run, no key does harm"
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("escape")
        assert app.processes.running_count() == 0

    drive(stage.app(), script, size)


def test_an_empty_workspace_leads_with_own_documents_then_a_paper_then_the_demo(stage: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        text = screen_text(app)
        places = [text.index(word) for word in ("8 ", "Your own documents", "f6 ", "A paper", "D ", "The demo")]
        assert places == sorted(places)
        await pilot.press("8")
        await until(pilot, lambda: isinstance(app.screen, OwnRowsScreen))

    drive(stage.app(), script, SIZES["80x24"])


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_every_state_with_glyph_and_word(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    every_state(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        assert "unfinished" in screen_text(app), "unfinished runs are offered"
        app.clear_notifications()
        await until(pilot, lambda: "unfinished" not in screen_text(app))
        await pilot.press("space")
        snapshot.hide[str(stage.path)] = "WORKSPACE"
        await snapshot(app, "runs-states")
        await pilot.press("k", "g", "j")
        await snapshot(app, "runs-states-failed")
        await pilot.press("G", "enter")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog))
        assert "damaged" in screen_text(app)

    drive(stage.app(), script, size)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_quantisations_of_a_model_are_distinguishable(size: tuple[int, int], stage: Stage) -> None:
    kinds = {"4bit": "4-bit g64", "8bit": "8-bit g64", "bf16": "bf16"}
    for kind, quantisation in kinds.items():
        name = f"cmc-bench-Qwen3-VL-4B-Instruct-{kind}-paper-0a1b2c3d"
        stage.run(name, model=f"mlx-community/Qwen3-VL-4B-Instruct-{kind}", quantisation=quantisation)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        rows = screen_text(app).splitlines()[3:6]
        for kind, row in zip(reversed(kinds), rows, strict=True):
            assert f"{kind}-paper-0a1b2c3d"[: 4 if size[0] < 100 else None] in row
        await pilot.press("slash", *"4bit", "enter")
        await until(pilot, lambda: app.screen.query_one(VirtualTable).row_count == 1)

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
        await until(pilot, lambda: "was killed or crashed" in screen_text(app))

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


def order(app: RashomonApp) -> list[object]:
    """Return the keys of the rows."""
    table = app.screen.query_one(VirtualTable)
    return [table.key(number) for number in range(table.row_count)]


def test_reading_the_runs_does_not_look_like_an_empty_workspace(stage: Stage) -> None:
    stage.run("a-run")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        complete, app.snapshot = app.snapshot, WorkspaceSnapshot()
        screen.show_snapshot()
        assert "◐ reading" in screen_text(app)
        assert "No runs yet" not in screen_text(app)
        app.snapshot = complete
        screen.show_snapshot()
        assert "◐" not in screen_text(app)

    drive(stage.app(), script)


def test_the_demos_runs_are_one_key_away(stage: Stage) -> None:
    demo = Stage(stage.path / DEMOS_FOLDER / "cmc-bench")
    demo.run("demo-model")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        assert "the demo's runs" in screen_text(app)
        await pilot.press("D")
        await until(pilot, lambda: app.snapshot.run("demo-model") is not None)
        assert app.workspace.path == demo.path

    drive(stage.app(), script)


def test_a_workspace_that_vanishes_says_so(stage: Stage) -> None:
    stage.run("a-run")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "a-run" in screen_text(app))
        stage.path.rename(stage.path.with_name("elsewhere"))
        await until(pilot, lambda: "is gone" in screen_text(app))
        assert "No runs yet" not in screen_text(app)

    drive(stage.app(), script)


def test_another_folder_is_opened_by_its_path(stage: Stage, tmp_path: Path) -> None:
    other = Stage(tmp_path / "other")
    other.run("a-run-elsewhere")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        await pilot.press(*"/nowhere", "enter")
        assert isinstance(app.screen, TextDialog), "a folder that is not there is not opened"
        app.screen.query_one(Input).value = str(other.path)
        await pilot.press("enter")
        await until(pilot, lambda: app.snapshot.run("a-run-elsewhere") is not None)

    drive(stage.app(), script)


def test_runs_are_listed_by_their_accuracy_under_conflict(stage: Stage) -> None:
    stage.run("reads-both", answering=lambda i: says("12" if i.condition in CONFLICTS else "15")(i))
    stage.run("guesses", answering=lambda i: says("15" if i.condition in CONFLICTS else "12")(i))
    stage.run("unanswered", done=0, state="planned")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        assert order(app) == ["unanswered", "guesses", "reads-both"], "the newest first"
        for _ in range(12):
            if "MFR ▾" in screen_text(app):
                break
            await pilot.press("S")
        assert order(app) == ["reads-both", "guesses", "unanswered"], "a run without a label is the last"
        await pilot.press("I")
        assert "MFR ▴" in screen_text(app)
        assert order(app) == ["guesses", "reads-both", "unanswered"]

    drive(stage.app(), script)


def test_a_click_on_a_title_orders_by_it_and_a_click_on_a_row_moves_there(stage: Stage) -> None:
    for name in ("b", "c", "a"):
        stage.run(name)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        table = app.screen.query_one(VirtualTable)
        lines = screen_text(app).splitlines()
        header = next(number for number, line in enumerate(lines) if " run " in line)
        await pilot.click(offset=(lines[header].index(" run ") + 1, header))
        assert order(app) == ["a", "b", "c"]
        await pilot.click(offset=(lines[header].index(" run ") + 1, header))
        assert order(app) == ["c", "b", "a"]
        await pilot.click(offset=(20, header + 2))
        assert table.cursor_key == "b"

    drive(stage.app(), script)


def test_groups_by_benchmark(stage: Stage) -> None:
    for name, benchmark in (("x", "cmc-bench"), ("y", "clash"), ("z", "cmc-bench")):
        stage.run(name, benchmark=benchmark, done=0, state="planned")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        table = app.screen.query_one(VirtualTable)
        await pilot.press("b", "g")
        names = [key for key in order(app) if isinstance(key, str)]
        assert names == ["y", "z", "x"]
        assert table.row_count == 5, "a heading above each group"
        await pilot.press("d", "p", "x", "r")
        assert isinstance(app.screen, RunsScreen), "nothing can be done to a heading"
        await pilot.press("enter")
        await until(pilot, lambda: table.row_count == 4)
        await pilot.press("down", "space")
        assert table.marks == {"x", "z"}, "a mark on a heading marks its runs"
        await pilot.press("b")
        assert order(app) == ["z", "y", "x"]

    drive(stage.app(), script)


@pytest.mark.slow
def test_a_title_is_listed_beside_the_name(stage: Stage) -> None:
    name = "cmc-bench-Qwen3-VL-4B-Instruct-4bit-paper-0a1b2c3d"
    folder = stage.run(name, model="a/Qwen3-VL-4B-Instruct-4bit")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        assert name in screen_text(app)
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        app.screen.query_one(Input).value = "x" * 10_000
        await pilot.press("enter")
        assert isinstance(app.screen, TextDialog), "too long"
        app.screen.query_one(Input).value = "[red]best\x1b[31m one"
        await pilot.press("enter")
        await until(pilot, lambda: r"[red]best\x1b[31m one" in screen_text(app).partition("This run")[0])
        assert name in screen_text(app)
        assert folder.exists()
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        app.screen.query_one(Input).value = ""
        await pilot.press("enter")
        await until(pilot, lambda: "best" not in screen_text(app))

    drive(stage.app(), script, SIZES["120x40"])


def opened(app: RashomonApp, screen: str) -> bool:
    """Return whether the screen of that name is on display."""
    return getattr(app.screen, "name_", "") == screen


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_every_screen_calls_a_run_by_the_name_that_commands_take(size: tuple[int, int], stage: Stage) -> None:
    names = [f"cmc-bench-Qwen3-VL-4B-Instruct-{kind}-paper-0a1b2c3d" for kind in ("4bit", "8bit")]
    for name in names:
        stage.run(name, model="a/Qwen3-VL-4B-Instruct-4bit")
        assert run_folder(stage.workspace, name).name == name

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        for key, screen in (("1", "runs"), ("2", "live"), ("3", "samples"), ("4", "tables"), ("e", "export")):
            await pilot.press(key)
            await until(pilot, partial(opened, app, screen))
            await until(pilot, lambda: names[1] in screen_text(app))
        app.open_screen("compare", [stage.workspace.runs_folder / name for name in names])
        await until(pilot, lambda: {"4bit", "8bit"} <= set(re.findall("[48]bit", screen_text(app).splitlines()[0])))

    drive(stage.app(), script, size)


def test_thousands_of_runs_are_ordered_and_grouped_quickly() -> None:
    spec = {"benchmark": "cmc-bench", "model": "a/Qwen3-VL-4B-Instruct-4bit", "prompt_set": "paper", "judge": ["match"]}
    progress = tuple(
        ConditionProgress(condition, 100, 60, 0, 0, 0, 0.0, 0, {})
        for condition in get_benchmark("cmc-bench").conditions
    )
    summaries = [RunSummary(f"run-{n:04}", "done", spec, progress, created=float(n), title=f"{n}") for n in range(5000)]
    runs = [WatchedRun(Path(run.name), run) for run in summaries]
    listed = RunList(order="run", grouped=True)
    listed.update(runs, (), 120)
    changed = [WatchedRun(Path(run.name), replace(run)) for run in summaries]
    began = time.thread_time()
    listed.update(changed, (), 120)
    assert time.thread_time() - began < 0.2, "a change of one run must not cost as much as reading all"
    assert len(listed.entries) == 5001


def test_baselines_of_the_run_under_the_cursor_are_made_by_a_process(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.run("a-run")
    started: list[list[str]] = []

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        monkeypatch.setattr(app.processes, "start", started.append)
        await pilot.press("B")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert not started
        await pilot.press("y")
        await until(pilot, lambda: started)
        assert "they appear in this list" in screen_text(app)

    drive(stage.app(), script)
    assert started == [["baselines", "a-run"]]
