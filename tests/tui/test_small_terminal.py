"""Every screen in a terminal of 40 columns and 10 lines, with what goes wrong meanwhile."""

from __future__ import annotations

import shutil
from functools import partial
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot

from app.tui.screens import SCREENS
from app.tui.screens.runs_screen import RunsScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.dialogs import Confirm
from tests.support.tui_computed import press, three_runs, until_computed
from tests.support.tui_stage import Stage, drive, screen_text, until

SMALL = (40, 10)
OF_RUNS = [name for name, entry in SCREENS.items() if entry.needs != "nothing"]


@pytest.mark.slow
def test_every_screen_opens_and_takes_keys(stage: Stage) -> None:
    runs = three_runs(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        for name, entry in SCREENS.items():
            await pilot.resize_terminal(*SMALL)
            app.open_screen(name, list(runs[:1]))
            await pilot.pause()
            await until_computed(pilot)
            assert screen_text(app).strip(), name
            await press(pilot, "down", "tab", "pagedown", "up")
            app.screen.post_message(events.Paste("x" * 10_000))
            await pilot.pause()
            await pilot.resize_terminal(120, 40)
            await until_computed(pilot)
            assert entry.title.split()[0] in screen_text(app), name
            for _ in range(8):
                if isinstance(app.screen, RunsScreen):
                    break
                await press(pilot, "y" if isinstance(app.screen, Confirm) else "escape")
            assert isinstance(app.screen, RunsScreen), f"{name} cannot be left"

    drive(stage.app(), script, SMALL)


def is_gone(app: RashomonApp, run: str) -> bool:
    return app.snapshot.run(run) is None


def is_hidden(app: RashomonApp, run: str) -> bool:
    return run not in screen_text(app)


@pytest.mark.slow
def test_a_run_that_is_deleted_while_it_is_on_display(stage: Stage) -> None:
    runs = {name: stage.run(f"run-on-{name}") for name in OF_RUNS}

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        for name, run in runs.items():
            app.open_screen(name, [run])
            await pilot.pause()
            await until_computed(pilot)
            shutil.rmtree(run)
            await until(pilot, partial(is_gone, app, run.name))
            await pilot.press("down", "enter")
            for _ in range(6):
                await pilot.press("escape")
                await pilot.pause()
            assert isinstance(app.screen, RunsScreen), f"{name} cannot be left"
            await until(pilot, partial(is_hidden, app, run.name))

    drive(stage.app(), script, (80, 24))
