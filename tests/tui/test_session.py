"""A session by keys alone, as far as the screens go: browse the tables, compare two quantisations, look at a flip, export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from app.tui.app import RashomonApp
from app.tui.screens.export import ExportScreen
from app.tui.screens.flipped import BesideScreen
from app.tui.screens.runs import RunsScreen
from tests.tui.computed import press, three_runs
from tests.tui.stage import Stage, drive, screen_text


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
        app.current = runs  # what marking them leaves there
        await press(pilot, "5")
        assert "Side by side" in screen_text(app)
        await press(pilot, "t", "enter", "enter")
        assert isinstance(app.screen, BesideScreen)
        await press(pilot, "n", "escape", "escape", "T", "T", "plus")
        assert "Margin: 5 points" in screen_text(app)
        await press(pilot, "e", "w")
        screen = app.screen
        assert isinstance(screen, ExportScreen)
        assert screen.written is not None
        assert (tmp_path / "export" / runs[0].name / "results.json").is_file()
        await press(pilot, "escape", "1")
        assert isinstance(app.screen, RunsScreen)
        await pilot.press("ctrl+q")

    app = stage.app()
    drive(app, script)
    assert app.return_code == 0
