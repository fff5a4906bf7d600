"""A bundle in the interface: everything can be looked at, and no key changes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from app.exports.bundle_export import write_bundle
from app.store.workspace import Workspace
from app.tui.screens.runs_screen import RunsScreen
from app.tui.screens.samples_screen import SamplesScreen
from app.tui.screens.tables_screen import TablesScreen
from app.tui.screens.trainings_screen import TrainingsScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.dialogs import ErrorDialog, TextDialog
from tests.support.runs import says
from tests.support.trust import tree
from tests.support.tui_stage import Stage, Staged, drive, screen_text, until

pytestmark = pytest.mark.usefixtures("without_figures")


@pytest.fixture
def bundle(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folders = [stage.run(name, answering=says("12")) for name in ("one", "two")]
    return write_bundle(stage.workspace, folders, tmp_path / "theirs.zip", "none").path


@pytest.mark.slow
def test_no_key_changes_a_bundle(bundle: Path) -> None:
    workspace = Workspace.open(bundle)
    before = tree(workspace.path)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "theirs.zip, read-only" in screen_text(app))
        assert "received, read-only" in screen_text(app)
        # delete, rename, adopt, baselines; new run, label, own rows, review, fetch, answer, vary
        for key in ("d", "r", "a", "B", "ctrl+n", "6", "f4", "f5", "f6", "f7", "f9"):
            await until(pilot, lambda: isinstance(app.screen, RunsScreen))
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, ErrorDialog))
            assert "is a bundle, which is only read" in screen_text(app)
            await pilot.press("escape")
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(app.screen, TrainingsScreen))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog))
        await pilot.press("escape")
        app.open_screen("tables", [workspace.runs_folder / "one"])
        await until(pilot, lambda: isinstance(app.screen, TablesScreen))
        app.open_screen("samples", [workspace.runs_folder / "one"])
        await until(pilot, lambda: isinstance(app.screen, SamplesScreen))
        await until(pilot, lambda: "Prompt as sent" in screen_text(app))  # an answer is selected
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog))

    drive(Staged(workspace), script, (120, 40))
    assert tree(workspace.path) == before


@pytest.mark.slow
def test_a_bundle_is_opened_in_place_of_a_folder(bundle: Path, stage: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "2 runs" in screen_text(app))
        await pilot.press("o")
        await pilot.pause()
        await pilot.press("end", "enter")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        app.screen.query_one(Input).value = str(bundle)
        await pilot.press("enter")
        await until(pilot, lambda: "theirs.zip, read-only" in screen_text(app))

    drive(stage.app(), script, (120, 40))
