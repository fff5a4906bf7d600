"""Work in a thread: what a screen hears of its end, of its errors, and of a newer call."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

from textual.pilot import Pilot

from app.tui.latest_only import LatestOnly
from app.tui.screens.base_screen import RashomonScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.dialogs import ErrorDialog
from benchmarks.errors import SpecError
from tests.support.tui_stage import Stage, drive, screen_text, until


def fail(error: Exception) -> None:
    raise error


def test_work_ends_with_its_result_or_with_an_error_of_a_user(stage: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen, heard = app.screen, list[object]()
        assert isinstance(screen, RashomonScreen)
        screen.attempt(lambda: 1, heard.append, ended=lambda: heard.append("end"))
        await until(pilot, lambda: heard == ["end", 1])
        screen.attempt(lambda: fail(SpecError("wrong")), heard.append, lambda error: heard.append(str(error)))
        await until(pilot, lambda: heard == ["end", 1, "wrong"])
        assert app.screen is screen
        screen.attempt(lambda: fail(SpecError("no handler")), heard.append)
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog) and "no handler" in screen_text(app))
        await pilot.press("escape")
        screen.attempt(lambda: fail(KeyError("x")), heard.append, heard.append, ended=lambda: heard.append("end"))
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog) and "bug in Rashomon" in screen_text(app))
        assert heard == ["end", 1, "wrong", "end"]

    drive(stage.app(), script)


def test_only_the_newest_call_of_a_group_is_heard(stage: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen, heard, go = app.screen, list[object](), threading.Event()
        assert isinstance(screen, RashomonScreen)
        latest = LatestOnly(screen, "latest")
        latest.submit(lambda: go.wait(10), lambda _: heard.append("first"))
        for number in range(5):
            latest.submit(partial(int, number), heard.append)
        screen.attempt(lambda: go.wait(10), lambda _: heard.append("old"), ended=lambda: heard.append("old"), group="x")
        screen.attempt(lambda: "new", heard.append, group="x")
        await until(pilot, lambda: heard == ["new"])
        go.set()
        await until(pilot, lambda: heard == ["new", 4])
        await app.workers.wait_for_complete()
        assert heard == ["new", 4]

    drive(stage.app(), script)
