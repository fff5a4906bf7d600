"""Tasks that begin something, each in as few keys as it takes from the open interface, with real processes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from app.store.run_summary import read_summary
from app.tui.screens.live_screen import LiveScreen
from app.tui.screens.new_run_screen import NewRunScreen
from app.tui.screens.own_rows_screen import OwnRowsScreen
from app.tui.tui_app import RashomonApp
from tests.support.tui_computed import CHARTS, press
from tests.support.tui_stage import Stage, drive, screen_text, until
from tests.tui.test_new_run import desk, known, opened
from tests.tui.test_own_rows import TABLE
from tests.tui.test_session import folders, outlived

__all__ = ["desk", "outlived"]
pytestmark = pytest.mark.slow


class Keys:
    """A pilot that counts the keys; a typed value counts as none."""

    def __init__(self, pilot: Pilot[Any]) -> None:
        self._pilot, self.count = pilot, 0

    async def press(self, *keys: str) -> None:
        self.count += len(keys)
        await press(self._pilot, *keys)


def test_two_quantisations_are_started_on_20_examples(outlived: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        keys = Keys(pilot)
        keys.count = 1  # ctrl+n
        await keys.press("ctrl+n", "space", "j", "space", "ctrl+n")
        await pilot.press(*"20")
        await known(pilot, screen)
        assert screen.spec is not None
        assert sorted(Path(model).name for model in screen.spec.model) == ["model-4bit", "model-bf16"]
        assert screen.spec.limit == 20
        await keys.press("ctrl+r", "y")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        assert keys.count == 8
        await until(pilot, lambda: [read_summary(run).state for run in folders(outlived)] == ["done"] * 2)

    drive(outlived.app(), script)


def test_a_table_of_ones_own_becomes_a_finished_run(outlived: Stage, tmp_path: Path) -> None:
    outlived.workspace.build_folder("cmc-bench").unlink()
    for number, chart in enumerate(sorted(CHARTS.glob("**/*.png"))[:4]):
        shutil.copy(chart, f"{number}.png")
    Path("rows.csv").write_text(TABLE, "utf-8")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        keys = Keys(pilot)
        await keys.press("8")
        screen = app.screen
        assert isinstance(screen, OwnRowsScreen)
        screen.query_one("#input-table", Input).value = "rows.csv"
        await keys.press("enter", "b", "y")
        await until(pilot, lambda: "Built: run it?" in screen_text(app))
        await keys.press("y")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen))
        form = app.screen
        assert isinstance(form, NewRunScreen)
        await until(pilot, lambda: form.choices.contents is not None and form.choices.models)
        await keys.press("ctrl+n", "space")
        await known(pilot, form)
        await keys.press("ctrl+r", "y")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        assert keys.count == 9
        await until(pilot, lambda: [read_summary(run).state for run in folders(outlived)] == ["done"])
        await until(pilot, lambda: "✓ done" in screen_text(app))

    drive(outlived.app(), script)
