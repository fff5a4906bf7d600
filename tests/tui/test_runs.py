"""The list of runs."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from app.tui.app import RashomonApp
from tests.tui.conftest import Snapshot
from tests.tui.stage import SIZES, Stage, drive


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_an_empty_workspace(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        snapshot.hide[str(stage.path)] = "WORKSPACE"
        snapshot(app, "runs-empty")

    drive(stage.app(), script, size)
