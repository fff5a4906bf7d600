"""Exporting from the interface."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from app.tui.screens.export_screen import ExportScreen
from app.tui.tui_app import RashomonApp
from tests.support.runs import instances
from tests.support.tui_computed import FIRST, mixed, press, until_settled, visit
from tests.support.tui_stage import BOTH, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that the interface was opened in."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("size", BOTH)
def test_selected_formats_are_written_and_listed_with_their_sizes(
    size: tuple[int, int], stage: Stage, snapshot: Snapshot, here: Path
) -> None:
    run = stage.run(FIRST, asked=instances(4), answering=mixed(0))
    out = here / "out"

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "tables", (run,))
        await press(pilot, "e")
        screen = app.screen
        assert isinstance(screen, ExportScreen)
        field = screen.query_one("#folder", Input)
        assert Path(field.value) == here / "export" / FIRST
        field.value = "out"
        await pilot.pause()
        await until_settled(pilot)
        await snapshot(app, "export")
        await press(pilot, "down", "space", "down", "down", "space", "down", "space", "up", "up")  # Markdown alone
        await press(pilot, "w")
        assert screen.written is not None
        assert screen.written.folder == out
        assert [path.name for path in out.iterdir()] == ["tables.md"]
        assert "✓ 1 file, " in screen_text(app)
        field.value = "/dev/null/nowhere"
        await press(pilot, "w")
        assert "Not a directory" in str(screen.query_one("#report", Static).content)
        await until_settled(pilot)
        await snapshot(app, "export-failed")
        assert [path.name for path in out.iterdir()] == ["tables.md"]
        field.value = "out"
        await press(pilot, "down", "down")
        await until(pilot, lambda: "1 file, replaces 1:" in screen_text(app))
        assert "tables.md  exists" in screen_text(app)
        await press(pilot, "up", "up")
        await press(pilot, "space", "w")
        assert "select a format first" in screen_text(app)

    drive(stage.app(), script, size)


@pytest.mark.slow
def test_a_tiny_terminal_shows_a_form_too(stage: Stage, here: Path) -> None:
    run = stage.run(FIRST, asked=instances(1), answering=mixed(0))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        for name, words in (("export", "Formats"), ("tables", "Main results"), ("compare", "Recommendation")):
            await visit(pilot, app, name, (run,))
            assert words in screen_text(app)

    drive(stage.app(), script, (40, 10))


def test_what_is_typed_into_the_folder_is_a_folder_and_no_key(stage: Stage, here: Path) -> None:
    run = stage.run(FIRST, asked=instances(4), answering=mixed(0))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await visit(pilot, app, "export", (run,))
        screen = app.screen
        assert isinstance(screen, ExportScreen)
        screen.query_one("#folder", Input).value = ""
        await press(pilot, "tab", "w", "e", "[", "b", "]", "enter")
        assert screen.written is not None
        assert screen.written.folder == here / "we[b]"
        assert sorted(os.listdir(here / "we[b]")) == sorted(name for name, _ in screen.written.files)

    drive(stage.app(), script)
