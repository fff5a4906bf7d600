"""Fixtures: an empty workspace, and text snapshots of screens."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.tui_stage import Stage, screen_text

for variable in ("NO_COLOR", "TEXTUAL_THEME", "TMUX"):
    os.environ.pop(variable, None)

SNAPSHOTS = Path(__file__).parent / "snapshots"
SNAPSHOT_PATIENCE = 20.0


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Yield an empty workspace with a cache folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.MonkeyPatch.context() as zone:
        zone.setenv("TZ", "UTC")  # snapshots hold times of day
        time.tzset()
        empty_stage = Stage(tmp_path / "workspace")
        yield empty_stage
        empty_stage.close()
    time.tzset()


class Snapshot:
    """Comparison of a screen's text with a file in ``tests/tui/snapshots``; ``pytest --snapshot-update`` writes the file."""

    def __init__(self, update: bool, hide: dict[str, str]) -> None:
        self.update = update
        self.hide = hide
        """Machine-dependent texts, such as a folder, and their replacements (of equal length if columns follow)."""

    async def __call__(self, app: Any, name: str) -> None:
        """Assert that the screen equals the snapshot ``name`` of its size, once a busy machine has painted it."""
        path = SNAPSHOTS / f"{name}-{app.size.width}x{app.size.height}.txt"
        if self.update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(self._text(app), "utf-8")
        expected = path.read_text("utf-8") if path.exists() else "(there is no snapshot yet: --snapshot-update)"
        end = time.monotonic() + SNAPSHOT_PATIENCE
        while self._text(app) != expected and time.monotonic() < end:
            await asyncio.sleep(0.02)
        assert self._text(app) == expected

    def _text(self, app: Any) -> str:
        text = screen_text(app)
        for what, instead in self.hide.items():
            text = text.replace(what, instead)
        return text


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Snapshot:
    return Snapshot(request.config.getoption("--snapshot-update"), {})
