"""Every screen in a terminal of 40 columns and 10 lines, with what goes wrong meanwhile."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot

from app.tui.app import RashomonApp
from app.tui.screens import SCREENS
from app.tui.screens.runs import RunsScreen
from tests.support.tui_computed import FIRST, press, three_runs, until_computed
from tests.support.tui_stage import Stage, drive, screen_text, until

SMALL = (40, 10)
OF_RUNS = [name for name, entry in SCREENS.items() if entry.needs != "nothing"]


@pytest.mark.parametrize("name", SCREENS)
def test_every_screen_opens_and_takes_keys(name: str, stage: Stage) -> None:
    runs = three_runs(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.open_screen(name, list(runs[:1]))
        await pilot.pause()
        await until_computed(pilot)
        assert screen_text(app).strip()
        await press(pilot, "down", "tab", "pagedown", "up")
        app.screen.post_message(events.Paste("x" * 10_000))
        await pilot.pause()
        await pilot.resize_terminal(120, 40)
        await until_computed(pilot)
        assert SCREENS[name].title.split()[0] in screen_text(app)

    drive(stage.app(), script, SMALL)


@pytest.mark.parametrize("name", OF_RUNS)
def test_a_run_that_is_deleted_while_it_is_on_display(name: str, stage: Stage) -> None:
    runs = three_runs(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.open_screen(name, list(runs[:1]))
        await pilot.pause()
        await until_computed(pilot)
        shutil.rmtree(runs[0])
        await until(pilot, lambda: app.snapshot.run(FIRST) is None)
        await pilot.press("down", "enter")
        for _ in range(6):
            await pilot.press("escape")
            await pilot.pause()
        assert isinstance(app.screen, RunsScreen), "every screen can be left"
        await until(pilot, lambda: FIRST not in screen_text(app))

    drive(stage.app(), script, (80, 24))
