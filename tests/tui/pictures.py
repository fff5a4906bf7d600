"""The README's pictures of the interface: ``python -m tests.tui.pictures [SCREEN ...]`` writes ``assets/screens/*.svg``.

Every screen in both sizes, of a workspace that is the same every time. A new screen adds a line to ``SHOTS``.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from textual.pilot import Pilot

from app.tui.app import RashomonApp
from app.tui.screens import SCREENS
from tests.support.runs import instances
from tests.tui.computed import build, computed, mixed, press
from tests.tui.stage import SIZES, Stage, drive, until

SCREENS_FOLDER = Path(__file__).resolve().parents[2] / "assets" / "screens"


class Shot(NamedTuple):
    """A picture: its name, the screen, how many of the workspace's runs it is of, and the keys that lead to it."""

    name: str
    screen: str = "runs"
    runs: int = 0
    keys: tuple[str, ...] = ()


SHOTS = (
    Shot("runs"),
    Shot("tables", "tables", 3),
    Shot("tables-labels", "tables", 3, ("p", "t", "t")),
    Shot("compare", "compare", 3),
    Shot("compare-flips", "compare", 3, ("t",)),
    Shot("compare-paper", "compare", 3, ("t", "t", "t")),
    Shot("compare-take", "compare", 3, ("T",)),
    Shot("flipped", "compare", 3, ("t", "enter")),
    Shot("answers", "compare", 3, ("t", "enter", "enter")),
    Shot("export", "export", 2),
    Shot("export-done", "export", 2, ("w",)),
)


def workspace(folder: Path) -> tuple[Stage, tuple[Path, ...]]:
    """Runs in every state, the first three of which are compared."""
    stage = Stage(folder / "workspace")
    data, picture = build(stage)
    asked = instances(24, picture=picture)
    runs = (
        stage.run(
            "charts-bf16",
            asked=asked,
            answering=mixed(0, gigabytes=6, seconds=1.2),
            data=data,
            model="org/Model-2B-bf16",
        ),
        stage.run(
            "charts-8bit",
            asked=asked,
            answering=mixed(7, gigabytes=4, seconds=0.8),
            data=data,
            model="org/Model-2B-8bit",
        ),
        stage.run(
            "charts-4bit",
            asked=asked,
            answering=mixed(1, gigabytes=3, seconds=0.5),
            data=data,
            model="org/Model-2B-4bit",
        ),
    )
    stage.run("broken-off", asked=asked, answering=mixed(2), state="running", done=60)
    stage.die(stage.workspace.runs_folder / "broken-off")
    stage.run("failed", asked=asked, state="failed", note="the model has no chat template", done=0)
    stage.run("going-on", asked=asked, answering=mixed(2), state="running", done=97, model="org/Model-4B-4bit")
    return stage, runs


def take(shot: Shot, size: str, stage: Stage, runs: tuple[Path, ...]) -> str:
    """The picture as SVG."""
    taken: list[str] = []

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        if shot.screen != "runs":
            app.go(shot.screen, runs[: shot.runs])
            await pilot.pause()
        await computed(pilot)
        await press(pilot, *shot.keys)
        await until(pilot, lambda: not app._notifications)
        taken.append(app.export_screenshot(title=f"rashomon, {SCREENS[shot.screen].title}"))

    drive(stage.app(), script, SIZES[size])
    # Rich numbers a picture's styles by its content; a fixed number keeps pictures of the same screen the same.
    return re.sub(r"terminal-\d+", "terminal-1", taken[0])


def main(names: list[str]) -> None:
    """Write the pictures called ``names``, or all."""
    SCREENS_FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rashomon-") as folder:
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        os.chdir(folder)
        stage, runs = workspace(Path(folder))
        try:
            for shot in SHOTS:
                for size in SIZES:
                    if not names or shot.name in names:
                        path = SCREENS_FOLDER / f"{shot.name}-{size}.svg"
                        told = take(shot, size, stage, runs).replace(folder, "/home/ann")
                        path.write_text(told, "utf-8")
                        print(path.name, flush=True)
        finally:
            stage.close()


if __name__ == "__main__":
    main(sys.argv[1:])
