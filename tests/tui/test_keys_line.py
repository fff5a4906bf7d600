"""The last line: the keys that work now, for the widget that has the focus."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from app.tui.app import RashomonApp
from app.tui.screens.help import HelpScreen
from app.tui.screens.new_run import NewRunScreen
from app.tui.widgets.keys_line import KeysLine
from tests.support.tui_stage import Stage, drive, screen_text, until


def test_a_click_on_a_key_presses_it(stage: Stage) -> None:
    stage.run("one")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        line = screen_text(app).splitlines()[-1]
        await pilot.click(KeysLine, offset=(line.index("Filter") + 1, 0))
        await until(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press("escape")
        await pilot.click(KeysLine, offset=(line.index("Help"), 0))
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))

    drive(stage.app(), script)


@pytest.mark.slow
def test_what_has_no_room_is_left_out(stage: Stage) -> None:
    stage.run("one")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        assert screen_text(app).splitlines()[-1].rstrip().endswith("? Help  ⏎ Open  ^q Quit")
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "New run" in screen_text(app).splitlines()[-1])
        line = screen_text(app).splitlines()[-1]
        await pilot.click(KeysLine, offset=(line.index("New run"), 0))
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen))

    drive(stage.app(), script, (60, 24))


def test_keys_that_do_nothing_here_are_left_out(stage: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        footer = screen_text(app).splitlines()[-1]
        assert "Filter" not in footer  # there is no run yet
        assert "q Back" not in footer
        await pilot.press("f6")
        await until(pilot, lambda: "q Back" in screen_text(app).splitlines()[-1])

    drive(stage.app(), script)


def test_nothing_is_pressed_beside_the_keys(stage: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        before = app.screen, app.focused
        await pilot.click(KeysLine, offset=(110, 0))
        assert (app.screen, app.focused) == before

    drive(stage.app(), script)
