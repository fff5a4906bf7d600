"""The Answer screen: a person answers by keys; the answers are a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from app.store.run_store import RunStore
from app.tui.screens.answer_screen import AnswerScreen
from app.tui.tui_app import RashomonApp
from benchmarks.build import BuildOptions
from benchmarks.clash import Clash
from tests.support.data.clash import published_folder, published_row
from tests.support.tui_stage import BOTH, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot


@pytest.fixture
def clash(stage: Stage, tmp_path: Path) -> Path:
    source = published_folder(tmp_path / "source", [published_row(number) for number in (1, 2)])
    return Clash().build([("published", str(source))], stage.workspace.build_folder("clash"), BuildOptions()).path


async def opened(pilot: Pilot[Any], app: RashomonApp, name: str, number: str) -> AnswerScreen:
    app.open_screen("answer")
    await until(pilot, lambda: "Answer which benchmark?" in screen_text(app))
    await pilot.press("enter")
    await until(pilot, lambda: "Who answers?" in screen_text(app))
    await pilot.press("ctrl+u", *name, "enter")
    await until(pilot, lambda: "How many examples?" in screen_text(app))
    await pilot.press("ctrl+u", *number, "enter")
    screen = app.screen
    assert isinstance(screen, AnswerScreen)
    await until(pilot, lambda: screen.session is not None and screen._text.displayed)
    return screen


@pytest.mark.parametrize("size", BOTH)
def test_answering_by_keys(size: tuple[int, int], stage: Stage, clash: Path, snapshot: Snapshot) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app, "ann", "1")
        await until(pilot, lambda: "image, jpg" in screen_text(app))
        await pilot.pause()
        await snapshot(app, "answer")
        assert not any(name in screen_text(app) for name in Clash.conditions), "the condition stays hidden"
        for number, text in enumerate(("A", "the cat is 1 of 2?", "B"), start=1):
            await pilot.press(*text, "enter")
            await until(pilot, lambda number=number: f"{number} of 4 answered" in screen_text(app))  # type: ignore[misc]
            await until(pilot, lambda: screen._text.displayed and not screen.query_one(Input).disabled)
        await pilot.press("enter")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: screen._text.displayed and not screen.query_one(Input).disabled)
        assert "3 of 4 answered" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not screen)
        screen = await opened(pilot, app, "ann", "1")
        await pilot.press("C", "enter")
        await until(pilot, lambda: "Everything is answered" in screen_text(app))

    drive(stage.app(), script, size)
    (name,) = stage.workspace.run_names()
    with RunStore.read(stage.workspace.runs_folder / name) as store:
        answers = [record.answer.text for record in store.records() if record.answer]
        assert sorted(answers) == ["A", "B", "C", "the cat is 1 of 2?"]
        assert store.meta("state")["state"] == "done"
