"""Tasks on finished and interrupted runs, each in as few keys as it takes from the open interface."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from app.tui.screens.tables_screen import TablesScreen
from app.tui.tui_app import RashomonApp
from app.tui.tui_processes import RunProcesses
from tests.support.runs import instances
from tests.support.tui_computed import FIRST, mixed, press, three_runs, until_settled
from tests.support.tui_stage import Stage, drive, screen_text, until


def test_an_interrupted_run_is_resumed_with_two_keys(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.run("an-older-one")
    folder = stage.run("broken-off", state="running", done=3)
    stage.die(folder)
    resumed: list[object] = []
    monkeypatch.setattr(RunProcesses, "resume", lambda self, folder, *_: resumed.append(folder))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "broken-off" in screen_text(app))
        await press(pilot, "R")
        assert not resumed, "it asks first"
        assert "21 of 24 answers are missing" in screen_text(app)
        await press(pilot, "y")
        assert resumed == [folder]

    drive(stage.app(), script)


@pytest.mark.slow
def test_one_table_is_copied_as_latex_with_three_keys(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    three_runs(stage)
    copied: list[str] = []
    monkeypatch.setattr(RashomonApp, "copy_to_clipboard", lambda app, text: copied.append(text))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: FIRST in screen_text(app))
        await press(pilot, "4")
        assert isinstance(app.screen, TablesScreen)
        await press(pilot, "y", "enter")
        (text,) = copied
        assert text.count(r"\begin{tabular}") == 1
        assert text.count(r"\caption") == 1

    drive(stage.app(), script)


@pytest.mark.slow
def test_the_recommended_run_is_read_with_four_keys(stage: Stage) -> None:
    items = instances(12)
    stage.run("first", asked=items, answering=mixed(0))
    stage.run("second", asked=items, answering=mixed(1), model="org/reader")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "first" in screen_text(app))
        await press(pilot, "space", "down", "space", "c")
        await until_settled(pilot)
        text = screen_text(app)
        assert "Recommendation" in text
        assert "reader" in text.split("Accuracy")[0], "the sentence is on top"

    drive(stage.app(), script, (120, 40))
