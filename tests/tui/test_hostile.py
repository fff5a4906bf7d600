"""Hostile text on every screen: it steers no terminal and nothing of it is a link. A new screen adds a line to ``CASES``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from textual.pilot import Pilot

from app.tui.app import RashomonApp
from tests.support.runs import instances, says
from tests.tui.stage import SIZES, Stage, drive, screen_text, strips, until

PAYLOAD = "[@click=app.bell]x[/] [/nope] [red]r \x1b]52;c;c3RvbGVu\x07\x1b[31m\x9b31m \u202edrow\u200b \udc80 a\tb"
STORED = PAYLOAD.replace("\udc80", "")
"""As it can stand in a spec."""


class Case(NamedTuple):
    """A screen: how to get to it with the hostile run, and what of the payload is to be read there (nothing: only no harm)."""

    name: str
    go: Callable[[Pilot[Any], RashomonApp, Path], Awaitable[object]]
    reads: str = ""


async def _runs(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> None:
    await until(pilot, lambda: "[@click" in screen_text(app))


CASES = [
    Case("runs", _runs, "[@click"),
]


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_hostile_text_is_only_text(case: Case, size: tuple[int, int], stage: Stage) -> None:
    folder = hostile_run(stage)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await case.go(pilot, app, folder)
        await pilot.pause()
        assert case.reads in screen_text(app)
        assert_harmless(app)

    drive(stage.app(), script, size)


def hostile_run(stage: Stage) -> Path:
    """A run with the payload in its question, answers, model and note."""
    folder = stage.run(
        "hostile", asked=instances(3, question=PAYLOAD), answering=says(PAYLOAD), model=f"policy:uniform{STORED}"
    )
    stage.note(folder, "failed", PAYLOAD)
    return folder


def assert_harmless(app: RashomonApp) -> None:
    """No character on the screen is a control or invisible one, and nothing hostile can be clicked."""
    for strip in strips(app):
        for segment in strip:
            assert segment.text.isprintable() or not segment.text, repr(segment.text)
            meta = segment.style.meta if segment.style else {}
            assert "app.bell" not in str(meta), meta
            assert segment.style is None or segment.style.link is None
