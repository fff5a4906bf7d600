"""Runs that differ, and waiting for what is computed of them."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from app.tui.app import RashomonApp
from benchmarks.base import Generation, Instance, Media
from tests.support.runs import Answering, instances, says
from tests.support.tui_stage import Stage, screen_text, until

CHARTS = Path(__file__).resolve().parents[2] / "assets" / "demo" / "held_out" / "cmc-bench"
FIRST, SECOND, THIRD = "first-4bit", "second-8bit", "third-half-way"


def mixed(shift: int, *, gigabytes: int = 2, seconds: float = 0.4) -> Answering:
    """Two thirds of the examples with the passage's value, the others with the picture's; one in seven with neither."""

    def answer(instance: Instance) -> Generation:
        number = int(instance.group[-4:]) + shift
        if number % 7 == 0:
            return says("I cannot tell from this.")(instance)
        source = "text" if number % 3 and "text" in instance.references else "image"
        found = instance.references.get(source) or instance.references["text"]
        return says(found[0], peak=gigabytes * 10**9, seconds=seconds)(instance)

    return answer


def three_runs(stage: Stage, examples: int = 12) -> tuple[Path, ...]:
    """Two that are finished and one that is under way, asked about a chart that is there."""
    data, picture = build(stage)
    asked = instances(examples, picture=picture)
    return (
        stage.run(FIRST, asked=asked, answering=mixed(0), data=data),
        stage.run(SECOND, asked=asked, answering=mixed(1), model="policy:always-text", data=data),
        stage.run(THIRD, asked=asked, answering=mixed(2), model="policy:random", state="running", done=20, data=data),
    )


def build(stage: Stage) -> tuple[Path, Media]:
    """A build's folder with one of the demo's charts in it, and that chart."""
    chart = min(CHARTS.glob("**/*.png"))
    picture = Media(hashlib.sha256(chart.read_bytes()).hexdigest(), ".png")
    folder = stage.path / "benchmarks" / "charts"
    (folder / "media").mkdir(parents=True)
    shutil.copy(chart, folder / "media" / picture.name)
    return folder, picture


async def gone_to(pilot: Pilot[Any], app: RashomonApp, name: str, folders: tuple[Path, ...]) -> None:
    """Go to a screen and wait for what it computes."""
    app.clear_notifications()
    app.go(name, folders)
    await pilot.pause()
    await computed(pilot)


async def computed(pilot: Pilot[Any]) -> None:
    """Wait until nothing is being computed; without the toasts, which go when their time is over."""

    def nothing() -> bool:
        if pilot.app.screen.query("Toast"):
            pilot.app.clear_notifications()
            return False
        told = screen_text(pilot.app)
        return "◐" not in told and "computing" not in told

    await until(pilot, nothing)
    await pilot.pause()


async def settled(pilot: Pilot[Any]) -> None:
    """Wait until the screen stays as it is: what was computed is there at once, but drawn only when there is time."""
    seen: list[str] = []

    def still() -> bool:
        seen.append(screen_text(pilot.app))
        return len(seen) > 5 and len(set(seen[-5:])) == 1

    await until(pilot, still)


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys one by one, each when what the one before began is done."""
    for key in keys:
        await pilot.press(key)
        await computed(pilot)
