"""The stage, and text snapshots of screens."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.tui_stage import Stage, screen_text

for variable in ("NO_COLOR", "TEXTUAL_THEME", "TMUX"):
    os.environ.pop(variable, None)

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """An empty workspace, in a cache folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Stage(tmp_path / "workspace")
    yield made
    made.close()


class Snapshot:
    """Compares a screen's text with a file in ``tests/tui/snapshots``; ``pytest --snapshot-update`` writes it."""

    def __init__(self, update: bool, hide: dict[str, str]) -> None:
        self.update = update
        self.hide = hide
        """What differs between machines, such as a folder, and what stands in its place (as long, if columns follow)."""

    def __call__(self, app: Any, name: str) -> None:
        """The screen is as it was; ``name`` names the file, with the size."""
        told = screen_text(app)
        for what, instead in self.hide.items():
            told = told.replace(what, instead)
        path = SNAPSHOTS / f"{name}-{app.size.width}x{app.size.height}.txt"
        if self.update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(told, "utf-8")
        expected = path.read_text("utf-8") if path.exists() else "(there is no snapshot yet: --snapshot-update)"
        assert told == expected


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Snapshot:
    return Snapshot(request.config.getoption("--snapshot-update"), {})
