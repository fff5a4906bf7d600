"""A whole session by keys alone: two quantisations run, left while they go on, browsed, overridden, compared, exported."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from app.engine.run_control import worker_pid
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.tui.screens.compare_screen import CompareScreen
from app.tui.screens.export_screen import ExportScreen
from app.tui.screens.flips_screen import SideBySideScreen
from app.tui.screens.live_screen import LiveScreen
from app.tui.screens.runs_screen import RunsScreen
from app.tui.screens.samples_screen import SamplesScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.dialogs import LeaveDialog
from app.tui.widgets.override_dialog import OverrideDialog
from tests.support.command import ROOT
from tests.support.tui_computed import press, three_runs, until_settled
from tests.support.tui_stage import Stage, drive, screen_text, until
from tests.tui.test_new_run import desk, known, opened

__all__ = ["desk"]


def folders(stage: Stage) -> list[Path]:
    return [stage.workspace.runs_folder / name for name in stage.workspace.run_names()]


@pytest.fixture
def outlived(desk: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Return the desk, whose workers find the project, and are ended if a test leaves them behind."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    yield desk
    for folder in folders(desk):
        with suppress(ProcessLookupError):
            if pid := worker_pid(folder):
                os.kill(pid, signal.SIGTERM)


@pytest.mark.slow
def test_two_quantisations_from_a_new_run_to_files(outlived: Stage, tmp_path: Path) -> None:
    async def begin(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await pilot.press("ctrl+n", "space", "j", "space", "ctrl+n", *"12")
        await known(pilot, screen)
        assert screen.spec is not None
        assert [Path(model).name for model in screen.spec.model] == ["model-4bit", "model-bf16"]
        await pilot.press("ctrl+r", "y")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and "model 4bit" in screen_text(app))
        await until(pilot, lambda: "Newest answer: " in screen_text(app))
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, LeaveDialog))
        await until(pilot, lambda: "Quit: everything keeps running" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        await pilot.press("ctrl+q", "y")

    left = outlived.app()
    drive(left, begin)
    assert left.return_code == 0
    assert left.processes.running_count() == 1, "what was started goes on"
    runs = folders(outlived)

    async def come_back(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: screen_text(app).count("✓ done") >= 2)
        # samples: one of them gets another label, and has it back
        await pilot.press("3")
        await until(pilot, lambda: isinstance(app.screen, SamplesScreen) and "aligned" in screen_text(app))
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press(*"condition:aligned", "enter")
        await until(pilot, lambda: "12 of" in screen_text(app))
        run = app.under_cursor[0]
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, OverrideDialog))
        await pilot.press("1", "enter", *"seen", "enter", *"ann", "enter")
        await until(pilot, lambda: "IMAGE *" in screen_text(app))
        assert overrides(run) == ["IMAGE"]
        await pilot.press("u")
        await until(pilot, lambda: "IMAGE *" not in screen_text(app) and "override undone" in screen_text(app))
        assert overrides(run) == []
        # the tables, and the samples from there
        await pilot.press("4")
        await until(pilot, lambda: "what should win?" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: "What it does with its sources" in screen_text(app))
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, SamplesScreen))
        # both beside each other
        await press(pilot, "1", "g", "space", "j", "space", "c")
        assert isinstance(app.screen, CompareScreen)
        await until(pilot, lambda: "Differ:" in screen_text(app))
        assert "--" not in screen_text(app), "a screen names no option of the command line"
        await press(pilot, "t", "t")
        assert "Enter lists a cell" in screen_text(app)
        await press(pilot, "e", "w")
        screen = app.screen
        assert isinstance(screen, ExportScreen)
        await until(pilot, lambda: screen.written is not None)
        await pilot.press("ctrl+q")

    back = outlived.app()
    drive(back, come_back)
    assert back.return_code == 0, "nothing goes on, so nothing is asked"
    for run in runs:
        run_summary = read_summary(run)
        assert (run_summary.state, run_summary.done) == ("done", run_summary.total), (
            "all was answered by whom the first window had started"
        )
    results = json.loads((tmp_path / "here" / "export" / runs[0].name / "results.json").read_text("utf-8"))
    assert len(results["runs"]) == 2


def overrides(run: Path) -> list[str | None]:
    """Return the labels that people gave in the place of the judge's."""
    with RunStore.read(run) as store:
        return [
            verdict.label
            for record in store.records()
            for judge, verdict in record.verdicts.items()
            if judge.startswith("override:")
        ]


@pytest.mark.slow
def test_leaving_and_stopping_stops_the_whole_batch_whoever_began_it(outlived: Stage) -> None:
    async def begin(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await pilot.press("ctrl+n", "space", "j", "space")
        await known(pilot, screen)
        await pilot.press("ctrl+r", "y")
        await until(pilot, lambda: "Newest answer: " in screen_text(app))
        await pilot.press("ctrl+q", "y")

    async def stop(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "● running" in screen_text(app))
        await pilot.press("ctrl+q", "x")

    left, stopped = outlived.app(), outlived.app()
    drive(left, begin)
    drive(stopped, stop)
    assert stopped.return_code == 0

    async def see(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: not left.processes.running_count())
        await until(pilot, lambda: "¦ interrupted" in screen_text(app) and "○ planned" in screen_text(app))
        await pilot.press("ctrl+q")

    drive(outlived.app(), see)
    assert [read_summary(run).state for run in folders(outlived)] == ["interrupted", "planned"]


def test_from_the_runs_to_tables_a_comparison_and_files(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = three_runs(stage)[:2]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await press(pilot, "4")  # the tables of the run under the cursor
        assert "Main results (Table 3)" in screen_text(app)
        await press(pilot, "t", "p", "escape")
        assert isinstance(app.screen, RunsScreen)
        await press(pilot, "G", "space", "k", "space", "5")
        assert app.marked == runs
        assert "Differ:" in screen_text(app)
        await press(pilot, "t", "t", "enter", "enter")
        assert isinstance(app.screen, SideBySideScreen)
        await press(pilot, "n", "escape", "escape", "T", "T", "T", "plus")
        assert "Margin: 5 points" in screen_text(app)
        await press(pilot, "e")
        screen = app.screen
        assert isinstance(screen, ExportScreen)
        await until_settled(pilot)  # the screen takes no key from before it was displayed
        await press(pilot, "w")
        await until(pilot, lambda: screen.written is not None)
        assert (tmp_path / "export" / runs[0].name / "results.json").is_file()
        await press(pilot, "escape", "1")
        assert isinstance(app.screen, RunsScreen)
        await pilot.press("ctrl+q")  # one of the runs goes on
        await until(pilot, lambda: isinstance(app.screen, LeaveDialog))
        await pilot.press("ctrl+q")

    app = stage.app()
    drive(app, script)
    assert app.return_code == 0
