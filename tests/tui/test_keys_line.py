"""The last line: the keys that work now, for the widget that has the focus."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from app.tui.screens import SCREENS
from app.tui.screens.doctor_screen import DoctorScreen
from app.tui.screens.help_screen import HelpScreen
from app.tui.screens.new_run_screen import NewRunScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.dialogs import TextDialog
from app.tui.widgets.keys_line import KeysLine
from tests.support.tui_stage import SIZES, Stage, drive, screen_text, until


def test_a_click_on_a_key_presses_it(stage: Stage) -> None:
    stage.run("one")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        line = screen_text(app).splitlines()[-1]
        await pilot.click(KeysLine, offset=(line.index("Filter") + 1, 1))
        await until(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press("escape")
        await pilot.click(KeysLine, offset=(line.index("Help"), 1))
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
        await pilot.click(KeysLine, offset=(110, 1))
        assert (app.screen, app.focused) == before

    drive(stage.app(), script)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("name", [name for name in SCREENS if name not in ("answer", "label")])
def test_every_screen_says_that_digits_open_screens(name: str, size: tuple[int, int], stage: Stage) -> None:
    folders = [stage.run("one"), stage.run("two")]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.open_screen(name, folders[: {"run": 1, "runs": 2, "nothing": 0}[SCREENS[name].needs]])
        await until(pilot, lambda: getattr(app.screen, "name_", "") == name)
        if name in ("rows", "train", "vary"):  # a field takes digits as text
            await until(pilot, lambda: isinstance(app.focused, Input))
            say = ["f1 Help"] if size[1] < 30 else ["f2 Settings", "f4 Your rows"]
        else:
            say = ["0-9 Screens"] if size[1] < 30 else ["1 Runs", "8 Your rows", "0 Review"]
        await until(pilot, lambda: all(text in "\n".join(screen_text(app).splitlines()[-2:]) for text in say))

    drive(stage.app(), script, size)


@pytest.mark.slow
def test_digits_that_a_field_or_the_labels_take_are_not_offered(stage: Stage) -> None:
    folder = stage.run("one")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "0-9 Screens" in screen_text(app))
        await pilot.press("slash")
        await until(pilot, lambda: "0-9 Screens" not in screen_text(app))
        app.open_screen("label", [folder])
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        await pilot.press("enter")
        await until(pilot, lambda: "1 IMAGE" in screen_text(app))
        assert "0-9" not in screen_text(app)

    drive(stage.app(), script, SIZES["80x24"])


@pytest.mark.slow
def test_a_click_on_a_screen_opens_it(stage: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "9 Doctor" in screen_text(app))
        line = screen_text(app).splitlines()[-2]
        await pilot.click(KeysLine, offset=(line.index("Doctor"), 0))
        await until(pilot, lambda: isinstance(app.screen, DoctorScreen))

    drive(stage.app(), script)
