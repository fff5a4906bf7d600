"""Every kind of dialog in terminals that are too small for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, TextArea

from app.tui.screens.help_screen import HelpScreen
from app.tui.screens.runs_screen import RunsScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.choice_dialogs import ChoiceDialog, MultipleChoiceDialog
from app.tui.widgets.command_dialog import CommandDialog
from app.tui.widgets.dialogs import Confirm, Dialog, ErrorDialog, LeaveDialog, StopDialog, TextDialog
from app.tui.widgets.override_dialog import OverrideDialog
from app.tui.widgets.review_dialogs import CorrectionDialog
from tests.support.tui_stage import Stage, drive, screen_text

SIZES = [
    pytest.param((20, 5), id="20x5"),
    pytest.param((10, 3), id="10x3", marks=pytest.mark.slow),
    pytest.param((40, 10), id="40x10", marks=pytest.mark.slow),
]
PROSE = "Decisions are saved under this name, and several people review a build, each under a name of their own. " * 3
WORDS = [f"word {number}" for number in range(30)]

DIALOGS: dict[str, Callable[[RashomonApp], Dialog[Any]]] = {
    "confirm": lambda app: Confirm("Discard your input?", PROSE, yes="Discard", no="Stay"),
    "leave": lambda app: LeaveDialog([PROSE]),
    "stop": lambda app: StopDialog(PROSE),
    "error": lambda app: ErrorDialog(PROSE),
    "text": lambda app: TextDialog("Reviewer", PROSE),
    "choice": lambda app: ChoiceDialog("Review which build?", WORDS),
    "several": lambda app: MultipleChoiceDialog("Rows of the paper", WORDS),
    "command": lambda app: CommandDialog(app, "Replace the build", ["doctor"], text=PROSE),
    "override": lambda app: OverrideDialog(["IMAGE", "TEXT", "NEITHER"], "IMAGE by match@4", "ann"),
    "correction": lambda app: CorrectionDialog("question of the row", PROSE),
    "help": lambda app: HelpScreen(app.screen),  # type: ignore[arg-type]
}


async def opened(app: RashomonApp, kind: str) -> Dialog[Any]:
    """Open a dialog; fail if it takes no key within two seconds."""
    dialog = DIALOGS[kind](app)
    await app.push_screen(dialog)
    for _ in range(100):
        if dialog.displayed:
            return dialog
        await asyncio.sleep(0.02)
    pytest.fail(f"{kind} takes no key at {app.size}")


@pytest.mark.parametrize("size", SIZES)
def test_every_dialog_takes_keys_and_is_left_with_escape(size: tuple[int, int], stage: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        for kind in DIALOGS:
            dialog = await opened(app, kind)
            await pilot.press("down", "z")
            assert app.screen is dialog, kind
            for field in dialog.query(Input):
                assert "z" in field.value or not field.has_focus, kind
            for text in dialog.query(TextArea):
                assert "z" in text.text, kind
            for options in dialog.query(OptionList):
                assert options.highlighted == 1, kind
                assert "word 1\n" in screen_text(app) or size[0] < 20, kind
            await pilot.press("escape")
            assert isinstance(app.screen, RunsScreen), f"Esc does not close {kind}"

    drive(stage.app(), script, size)
