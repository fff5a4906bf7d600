"""The result and the newest answer of the run under the cursor, where the list of runs leaves room."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from app.tui.tui_app import RashomonApp
from app.tui.widgets.block_picture import BlockPicture
from app.tui.widgets.run_glance import RunGlance
from benchmarks.vocabulary import Media, Text
from tests.support.runs import instances, says
from tests.support.tui_computed import build, mixed
from tests.support.tui_stage import BOTH, SIZES, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot
from tests.tui.test_hostile import PAYLOAD, STORED, assert_harmless


def glance(app: RashomonApp) -> RunGlance:
    return app.screen.query_one(RunGlance)


def result(app: RashomonApp) -> str:
    """Return the text of the result."""
    return str(app.screen.query_one("#glance-result Static", Static).content)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_few_runs_leave_room_for_the_result_and_the_newest_answer(
    size: tuple[int, int], stage: Stage, snapshot: Snapshot
) -> None:
    data, picture = build(stage)
    asked = instances(6, picture=picture)
    stage.run("first", asked=asked, answering=mixed(0), data=data, model="org/small-vlm-4bit")
    stage.run("second", asked=asked, answering=mixed(1), data=data)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "Result of second" in screen_text(app) and glance(app).query(BlockPicture))
        assert "policy:always-image is right on" in result(app)
        await snapshot(app, "runs-glance")
        await pilot.press("j")
        await until(pilot, lambda: "Result of first" in screen_text(app))
        assert "small-vlm-4bit is right on" in result(app)

    drive(stage.app(), script, size)


def test_what_to_try_is_what_show_advises(stage: Stage) -> None:
    def follows_the_text(instance: Any) -> Any:
        values = instance.references.get("text") or next(iter(instance.references.values()), ("none",))
        return says(values[0])(instance)

    stage.run("gullible", asked=instances(30), answering=follows_the_text, model="org/vlm")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "What to try, cheapest first" in result(app))
        assert "rashomon baselines gullible" in result(app)
        assert "--prompt-set expect-conflict" in result(app)

    drive(stage.app(), script)


@pytest.mark.parametrize("size", BOTH)
def test_a_list_that_needs_the_room_gets_it(size: tuple[int, int], stage: Stage) -> None:
    for number in range(5):
        stage.run(f"run-{number}", asked=instances(1))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: glance(app).display)
        for number in range(5, size[1] - 10):
            stage.run(f"run-{number}", asked=instances(1))
        await until(pilot, lambda: not glance(app).display)
        await pilot.press("slash", *"run-3", "enter")
        await until(pilot, lambda: glance(app).display)

    drive(stage.app(), script, size)


def test_an_active_run_keeps_its_picture_while_it_answers(stage: Stage) -> None:
    data, picture = build(stage)
    asked = instances(12, picture=picture)
    folder = stage.run("active", asked=asked, answering=says("12"), data=data, state="running", done=8)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: glance(app).query(BlockPicture) and "Result of active" in screen_text(app))
        drawn = glance(app).query_one(BlockPicture)
        before = result(app)
        for done in range(9, 20):
            stage.answer(folder, asked[done - 1 : done], says("12"))
            await asyncio.sleep(0.02)
            assert "Result of active" in screen_text(app)
            assert glance(app).query_one(BlockPicture) is drawn, "the same picture is not drawn again"
        await until(pilot, lambda: "19/72" in screen_text(app))
        await until(pilot, lambda: result(app) != before)

    drive(stage.app(), script)


@pytest.mark.parametrize("state", ["planned", "failed"])
def test_a_run_without_answers_says_so(state: str, stage: Stage) -> None:
    stage.run("empty", state=state, done=0)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "no answer yet" in screen_text(app) and "no answer that is right" in result(app))

    drive(stage.app(), script)


def test_a_damaged_run_has_no_glance(stage: Stage) -> None:
    (stage.run("damaged") / "run.sqlite").write_bytes(b"this is no database" * 300)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "damaged" in screen_text(app))
        assert not glance(app).display

    drive(stage.app(), script)


@pytest.mark.parametrize("size", BOTH)
def test_hostile_texts_are_only_text(size: tuple[int, int], stage: Stage) -> None:
    data, picture = build(stage)
    asked = [
        replace(item, id=f"{item.id} {STORED}", question=STORED, parts=(Media(picture.sha256, ".png"), Text("?")))
        for item in instances(1)
    ]
    stage.run("hostile", asked=asked, answering=says(PAYLOAD), data=data, model=f"org/{STORED}")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "Result of" in screen_text(app) and "[@click" in screen_text(app))
        assert_harmless(app)

    drive(stage.app(), script, size)
