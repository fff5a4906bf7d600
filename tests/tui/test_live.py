"""The screen of one run, in every state it can be in."""

from __future__ import annotations

import hashlib
import io
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from textual.pilot import Pilot

from app.engine.batch_runs import report_batch
from app.engine.run_control import is_paused
from app.store.run_store import RunStore
from app.store.store_types import NODES_KEY, NodeStatus
from app.tui.screens.live_screen import LiveScreen
from app.tui.screens.samples_screen import SamplesScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.block_picture import BlockPicture
from benchmarks.vocabulary import Generation, Instance, Media
from tests.support.runs import instances, says
from tests.support.tui_computed import until_settled
from tests.support.tui_stage import SIZES, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot


def answers(instance: Instance) -> Generation:
    """Answer right, wrong, empty, with an error or truncated, by turns."""
    number = int(instance.group[-4:])
    if number == 2 and "text-only" in instance.id:
        return Generation(f"{instance.id}#0", "", "error", error="the image cannot be decoded")
    text = ("It is 12.", "It is 15.", "", "They disagree: the picture says 12, the text 15.")[number % 4]
    generation = says(text, peak=3 * 10**9)(instance)
    return Generation(
        generation.request_id, generation.text, "length" if number == 3 else "stop", (1, 2), 30, 2, 0.1, 0.5, 3 * 10**9,
        active_memory=2 * 10**9, cache_memory=10**8,
    )  # fmt: skip


async def to_live(pilot: Pilot[Any], app: RashomonApp) -> None:
    app.clear_notifications()
    await pilot.press("2")
    await until(pilot, lambda: isinstance(app.screen, LiveScreen))
    await until(pilot, lambda: "Newest answer: " in screen_text(app) or "no answer yet" in screen_text(app))
    await until_settled(pilot)


@pytest.fixture(autouse=True)
def _same_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlx_backends.models.memory_and_cache_sizes._available", lambda device: (21 * 2**30, "memory"))


@pytest.mark.parametrize(
    ("state", "size"),
    [
        pytest.param(
            state, size, id=f"{state}-{name}", marks=[pytest.mark.slow] * (name == "120x40" and state != "running")
        )
        for state in ("planned", "running", "paused", "interrupted", "stopped", "failed", "done")
        for name, size in SIZES.items()
    ],
)
def test_a_run_in_every_state(state: str, size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    done = {"planned": 0, "done": None}.get(state, 17)
    noted = "running" if state in ("paused", "interrupted") else state
    notes = {
        "failed": "the key OPENAI_API_KEY is refused; set another.",
        "stopped": "every condition's 95% interval is 0.34 wide or less",
    }
    note = notes.get(state, "")
    folder = stage.run("a-run", state=noted, note=note, done=done, answering=answers)
    if state == "paused":
        (folder / "pause").touch()
    if state == "interrupted":
        stage.die(folder)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_live(pilot, app)
        await snapshot(app, f"live-{state}")

    drive(stage.app(), script, size)


def test_the_newest_answer_comes_with_its_picture(stage: Stage, tmp_path: Path) -> None:
    build = tmp_path / "build"
    (build / "media").mkdir(parents=True)
    out = io.BytesIO()
    Image.new("RGB", (300, 200), "#56b4e9").save(out, "PNG")
    media = Media(hashlib.sha256(out.getvalue()).hexdigest(), ".png")
    (build / "media" / media.name).write_bytes(out.getvalue())
    asked = instances(2, picture=media)
    folder = stage.run("seen", state="running", asked=asked, done=5, data=build)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_live(pilot, app)
        await until(pilot, lambda: app.screen.query(BlockPicture))
        await until(pilot, lambda: "▀▀▀" in screen_text(app))
        (build / "media" / media.name).write_bytes(b"\x89PNG\r\n\x1a\n broken")
        stage.answer(folder, asked[5:8], says("something new"))
        await until(pilot, lambda: "something new" in screen_text(app))

    drive(stage.app(), script)


def test_labels_are_counted_again_when_some_are_set_aside(stage: Stage) -> None:
    asked = instances(4)
    folder = stage.run("counted", state="running", asked=asked, done=12)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_live(pilot, app)
        await until(pilot, lambda: "match@4: 12 labelled" in screen_text(app))
        with RunStore.open(folder) as store:
            store.repeat(["aligned"], errors_only=False)
        await until(pilot, lambda: "10/24" in screen_text(app))
        stage.answer(folder, asked, says("15"))
        await until(pilot, lambda: "24/24" in screen_text(app))
        screen = app.screen
        assert isinstance(screen, LiveScreen)
        await until(pilot, lambda: sum(map(sum, (c.values() for c in screen.counts().values()))) == 24)

    drive(stage.app(), script)


def test_the_nodes_of_a_cluster(stage: Stage) -> None:
    folder = stage.run("spread", state="running", done=12)
    nodes = [
        NodeStatus(
            "mac-1.local", "ready", answers=7, errors=1, per_second=2.5, peak_memory=3 * 10**9, memory=16 * 10**9
        ),
        NodeStatus("mac-2.local", "refused", "mlx 0.1, [red]not 0.32"),
    ]
    with RunStore.open(folder) as store:
        store.set_meta(NODES_KEY, [asdict(node) for node in nodes])

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_live(pilot, app)
        await until(
            pilot, lambda: "mac-1.local: 7 answers, 1 error, 2.5 answers/s, 3.00 of 16.0 GB peak" in screen_text(app)
        )
        assert "mac-2.local: refused (mlx 0.1, [red]not 0.32)" in screen_text(app)

    drive(stage.app(), script)


def test_the_log_on_a_key(stage: Stage) -> None:
    folder = stage.run("logged", state="running", done=2)
    (folder / "worker.log").write_text("a line [red]\x1b[31m\nthe last line\n")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_live(pilot, app)
        await pilot.press("L")
        await until(pilot, lambda: "the last line" in screen_text(app))
        assert r"[red]\x1b[31m" in screen_text(app)
        await pilot.press("L")
        await until(pilot, lambda: "the last line" not in screen_text(app))

    drive(stage.app(), script)


@pytest.mark.parametrize("size", [pytest.param((80, 24), id="80x24")])
def test_the_position_in_a_batch(size: tuple[int, int], stage: Stage) -> None:
    folders = [
        stage.run("first"),
        stage.run("second", state="running", done=14),
        stage.run("third", state="planned", done=0),
    ]
    report_batch(folders)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("slash", *"second", "enter")
        await to_live(pilot, app)
        await until(pilot, lambda: "run 2 of 3, 34 answers left in all" in screen_text(app))
        stage.answer(folders[1], instances(4), says("12"))
        await until(pilot, lambda: "left in all at this speed" in screen_text(app))
        report_batch(folders[1:2])
        stage.note(folders[1], "judging")
        await until(pilot, lambda: "left in all" not in screen_text(app))

    drive(stage.app(), script, size)


def test_a_condition_leads_to_its_answers_and_back(stage: Stage) -> None:
    stage.run("a-run", state="running", done=17, answering=answers)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_live(pilot, app)
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(app.screen, SamplesScreen))
        samples = app.screen
        assert isinstance(samples, SamplesScreen)
        assert samples.query_text == "condition:image-correct"
        await until(pilot, lambda: len(samples.listing.ordinals) == 4)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))

    drive(stage.app(), script)


@pytest.mark.slow
def test_p_pauses_and_resumes(stage: Stage) -> None:
    folder = stage.run("a-run", state="running", done=3)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_live(pilot, app)
        await pilot.press("p")
        await until(pilot, lambda: "‖ paused" in screen_text(app))
        assert is_paused(folder)
        await pilot.press("p")
        await until(pilot, lambda: "● running" in screen_text(app))
        assert not is_paused(folder)

    drive(stage.app(), script)
