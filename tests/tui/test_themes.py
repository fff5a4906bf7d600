"""Contrast of what is painted, in every theme that Textual ships and on every screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from rich.color import Color as RichColor
from textual.color import Color
from textual.pilot import Pilot
from textual.theme import BUILTIN_THEMES

from app.tui.theme import MUTED_CONTRAST, TEXT_CONTRAST, THEME, contrast
from app.tui.tui_app import RashomonApp
from app.tui.widgets.dialogs import Confirm
from tests.support.tui_computed import press, three_runs, until_computed, until_settled
from tests.support.tui_stage import Stage, drive

FAST, FAST_SCREENS = (THEME.name, "textual-light", "nord"), ("runs", "samples", "compare", "new", "dialog")
"""The themes and screens of the fast suite; the slow one has all."""
NAMES = [THEME.name, *sorted(name for name, theme in BUILTIN_THEMES.items() if not theme.ansi)]
"""The themes whose colours are known; the others take the terminal's own."""
SCREENS = (
    "runs",
    "live",
    "samples",
    "tables",
    "compare",
    "label",
    "export",
    "new",
    "rows",
    "settings",
    "doctor",
    "fetch",
    "trainings",
    "train",
)
WORD = re.compile(r"\w{2}")


def _colour(colour: RichColor | None) -> Color | None:
    return None if colour is None or colour.is_default else Color(*colour.get_truecolor())


def _faint(app: RashomonApp) -> Iterator[str]:
    """Yield the words on the screen whose contrast with what is behind them is too small."""
    muted = Color.parse(app.theme_variables["dim"])
    dialog = app.screen.query("Dialog > Vertical")  # the screen under a dialog is dimmed
    region = dialog.first().region if dialog else app.screen.region
    for line, strip in enumerate(app.screen._compositor.render_strips()):
        if not region.y <= line < region.bottom:
            continue
        for segment in strip.crop(region.x, region.right):
            style = segment.style
            if style is None or not WORD.search(segment.text):
                continue
            text, behind = _colour(style.color), _colour(style.bgcolor)
            assert text is not None, (line, segment)
            assert behind is not None, (line, segment)
            if style.reverse:
                text, behind = behind, text
            if style.dim:
                text = behind.blend(text, 0.5)
            least = MUTED_CONTRAST if text == muted or style.dim else TEXT_CONTRAST
            if contrast(text, behind) < least - 0.05:  # colours are rounded to bytes
                yield f"{app.theme}, line {line}: {segment.text.strip()!r}, {text.hex} on {behind.hex}"


@pytest.mark.parametrize(
    "screen",
    [
        name if name in FAST_SCREENS else pytest.param(name, marks=pytest.mark.slow)
        for name in (*SCREENS, "help", "dialog")
    ],
)
@pytest.mark.parametrize("names", [FAST, pytest.param(tuple(NAMES), marks=pytest.mark.slow)], ids=["few", "all"])
def test_every_word_can_be_read(names: tuple[str, ...], screen: str, stage: Stage) -> None:
    runs = three_runs(stage)
    faint: list[str] = []

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        if screen == "help":
            await press(pilot, "question_mark")
        elif screen == "dialog":
            app.push_screen(Confirm("Delete?", "the run", yes="Delete"))
            await pilot.pause()
        elif screen != "runs":
            app.open_screen(screen, runs[:1] if screen in ("live", "samples", "label") else runs)
        await until_computed(pilot)
        await until_settled(pilot)
        app.clear_notifications()
        for name in names:
            app.theme = name
            await until_settled(pilot)
            faint.extend(_faint(app))

    drive(stage.app(), script, (120, 40))
    assert faint == []
