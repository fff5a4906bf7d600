"""What goes wrong around the interface: hostile names of files, a very long paste, a clipboard that is missing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from app.tui.screens import SCREENS
from app.tui.screens.runs_screen import RunsScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.dialogs import TextDialog
from tests.support.demo import FOUR_BIT
from tests.support.tui_computed import open_samples, press, until_computed, visit
from tests.support.tui_stage import Stage, drive, screen_text, until
from tests.tui.test_hostile import assert_harmless

NAME = "[@click=app.bell]x[red] \x1b]52;c;c3\x07\x1b[31m \u202edrow\u200b\udc80"
"""A file name that is as hostile as a file system allows."""

LONG = "is:wrong " * 1_112  # 10,008 characters


@pytest.mark.slow
def test_hostile_file_names_are_only_text(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / NAME
    (folder / "models").mkdir(parents=True)
    (folder / "models" / NAME).symlink_to(FOUR_BIT)
    table = folder / f"{NAME}.csv"
    table.write_text("image,question,answer,passage,conflict\n0.png,How many?,4,Four.,5\n", "utf-8")
    monkeypatch.chdir(folder)
    run = stage.run("run").rename(stage.workspace.runs_folder / NAME)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "[@click" in screen_text(app))
        assert_harmless(app)
        for name in ("live", "samples", "export", "new", "rows"):
            await visit(pilot, app, name, (run,) if SCREENS[name].needs != "nothing" else ())
            assert_harmless(app)
            if name == "new":
                await press(pilot, "ctrl+n")
                assert "[@click" in screen_text(app), "the model's folder"
                assert_harmless(app)
            if name == "rows":
                app.post_message(events.Paste(str(table)))
                await press(pilot, "enter")
                assert "[@click" in screen_text(app), "the path"
                assert_harmless(app)
            app.pop_screen()
            await pilot.pause()

    drive(stage.app(), script)


def test_ten_thousand_pasted_characters_do_no_harm(stage: Stage) -> None:
    run = stage.run("run")

    async def paste(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.post_message(events.Paste(LONG))
        await pilot.pause()
        await until_computed(pilot)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await paste(pilot, app)
        assert isinstance(app.screen, RunsScreen), "without a field, a paste is not a row of keys"
        assert app.snapshot.run("run") is not None
        await press(pilot, "r")
        assert isinstance(app.screen, TextDialog)
        await paste(pilot, app)
        await press(pilot, "enter")
        assert isinstance(app.screen, TextDialog), "no name is that long"
        await press(pilot, "escape")
        screen = await open_samples(pilot, app, run)
        await press(pilot, "slash")
        await paste(pilot, app)
        assert len(screen.query_one("#filter", Input).value) == len(LONG)
        await press(pilot, "enter")
        assert app.screen.name_ == "samples"

    drive(stage.app(), script, (80, 24))


@pytest.mark.parametrize("program", [None, "/usr/bin/pbcopy"])
def test_a_missing_clipboard_is_no_error(program: str | None, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stage.run("run")

    def broken(command: list[str], **_: object) -> None:
        raise FileNotFoundError(command[0])

    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("shutil.which", lambda name: program)
    monkeypatch.setattr(subprocess, "run", broken)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await open_samples(pilot, app, run)
        await pilot.press("Y")
        assert json.loads(app.clipboard)["id"] == "factual-0000/aligned"

    drive(stage.app(), script)
