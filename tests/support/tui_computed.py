"""Runs with different answers, and functions that wait for computed results."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from app.tui.screens.samples_screen import SamplesScreen
from app.tui.tui_app import RashomonApp
from benchmarks.vocabulary import Generation, Instance, Media
from tests.support.demo import with_image
from tests.support.runs import Answering, instances, says
from tests.support.tui_stage import Stage, screen_text, until

CHARTS = Path(__file__).resolve().parents[2] / "assets" / "demo" / "held_out" / "cmc-bench"
FIRST, SECOND, THIRD = "first-4bit", "second-8bit", "third-half-way"


def mixed(shift: int, *, gigabytes: int = 2, seconds: float = 0.4) -> Answering:
    """Answer two thirds of the examples with the passage's value, others with the picture's, one in seven with neither."""

    def answer(instance: Instance) -> Generation:
        number = int(instance.group[-4:]) + shift
        if number % 7 == 0:
            return says("I cannot tell from this.")(instance)
        source = "text" if number % 3 and "text" in instance.references else "image"
        references = instance.references.get(source) or instance.references["text"]
        return says(references[0], peak=gigabytes * 10**9, seconds=seconds)(instance)

    return answer


def three_runs(stage: Stage, examples: int = 12) -> tuple[Path, ...]:
    """Create two finished runs and an active one, about an existing chart, and return their folders."""
    data, picture = build(stage)
    of_group = {f"factual-{number:04d}": _copy(data, picture, number) for number in range(examples)}
    items = [with_image(item, of_group[item.group]) for item in instances(examples, picture=picture)]
    return (
        stage.run(FIRST, asked=items, answering=mixed(0), data=data),
        stage.run(SECOND, asked=items, answering=mixed(1), model="policy:always-text", data=data),
        stage.run(THIRD, asked=items, answering=mixed(2), model="policy:random", state="running", done=20, data=data),
    )


def _copy(data: Path, picture: Media, number: int) -> Media:
    """Add a picture that looks the same to a build, so that each example has a page of its own."""
    content = (data / "media" / picture.name).read_bytes() + bytes([number])
    copy = Media(hashlib.sha256(content).hexdigest(), ".png")
    (data / "media" / copy.name).write_bytes(content)
    return copy


def build(stage: Stage) -> tuple[Path, Media]:
    """Create a build's folder with one of the demo's charts and return both."""
    chart = min(CHARTS.glob("**/*.png"))
    picture = Media(hashlib.sha256(chart.read_bytes()).hexdigest(), ".png")
    folder = stage.path / "benchmarks" / "charts"
    (folder / "media").mkdir(parents=True)
    shutil.copy(chart, folder / "media" / picture.name)
    return folder, picture


async def visit(pilot: Pilot[Any], app: RashomonApp, name: str, folders: tuple[Path, ...]) -> None:
    """Open a screen and wait for its results."""
    app.clear_notifications()
    app.open_screen(name, folders)
    await pilot.pause()
    await until_computed(pilot)


async def open_samples(pilot: Pilot[Any], app: RashomonApp, folder: Path) -> SamplesScreen:
    """Open a run's answers and wait until the first of them is on display."""
    app.open_screen("samples", [folder])
    screen = app.screen
    assert isinstance(screen, SamplesScreen)
    await until(pilot, lambda: screen.detail is not None)
    await pilot.pause()
    return screen


async def until_computed(pilot: Pilot[Any]) -> None:
    """Dismiss the notifications and wait until nothing is being computed."""

    def nothing() -> bool:
        if pilot.app.screen.query("Toast"):
            pilot.app.clear_notifications()
            return False
        text = screen_text(pilot.app)
        return "◐" not in text and "computing" not in text

    await until(pilot, nothing)
    await pilot.pause()


async def until_settled(pilot: Pilot[Any]) -> None:
    """Wait until the screen stops changing, since computed results are drawn only when there is time."""
    seen: list[str] = []

    def still() -> bool:
        seen.append(screen_text(pilot.app))
        return len(seen) > 5 and len(set(seen[-5:])) == 1

    await until(pilot, still)


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys one by one, waiting for the results of each."""
    for key in keys:
        await pilot.press(key)
        await until_computed(pilot)
