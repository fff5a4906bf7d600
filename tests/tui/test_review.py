"""The Review screen: rows accepted, rejected and fixed by keys, by two people, with media that cannot be displayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import TextArea

from app.annotation.review_store import Decision, ReviewStore
from app.tui.key_commands import commands_of
from app.tui.screens.review_screen import ReviewScreen
from app.tui.screens.runs_screen import RunsScreen
from app.tui.tui_app import RashomonApp
from benchmarks.build import Build, BuildOptions
from benchmarks.clash import Clash
from benchmarks.contra4 import Contra4
from benchmarks.errors import StoreError
from tests.support.data.clash import published_folder, published_row
from tests.support.data.contra4 import PLAIN, row, write_source
from tests.support.tui_stage import BOTH, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot


@pytest.fixture
def clash(stage: Stage, tmp_path: Path) -> Path:
    source = published_folder(tmp_path / "source", [published_row(number) for number in range(1, 6)])
    return Clash().build([("published", str(source))], stage.workspace.build_folder("clash"), BuildOptions()).path


def decisions(stage: Stage, name: str = "clash") -> list[Decision]:
    with ReviewStore.open(stage.path / "reviews" / name) as store:
        return store.decisions()


async def opened(pilot: Pilot[Any], app: RashomonApp, name: str = "ann") -> ReviewScreen:
    """Open the screen on the first build under a name."""
    app.open_screen("review")
    await until(pilot, lambda: "Review which build?" in screen_text(app))
    await pilot.press("enter")
    await until(pilot, lambda: "Reviewer" in screen_text(app))
    await pilot.press("ctrl+u", *name, "enter")
    screen = app.screen
    assert isinstance(screen, ReviewScreen)
    await until(pilot, lambda: screen.session is not None)
    await until(pilot, lambda: screen._text.displayed)
    return screen


async def decided(pilot: Pilot[Any], app: RashomonApp, screen: ReviewScreen, count: int) -> None:
    """Wait until ``count`` rows are decided and the next is displayed."""
    await until(pilot, lambda: f"{count} of " in screen_text(app) and screen._text.displayed)


@pytest.mark.parametrize("size", BOTH)
def test_reviewing_by_keys(size: tuple[int, int], stage: Stage, clash: Path, snapshot: Snapshot) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await until(pilot, lambda: "image: image, jpg" in screen_text(app))
        await pilot.pause()
        await snapshot(app, "review")
        await pilot.press("a")
        await decided(pilot, app, screen, 1)
        await pilot.press("r")
        await until(pilot, lambda: "Reject: why?" in screen_text(app))
        await pilot.press("j", "enter")
        await decided(pilot, app, screen, 2)
        await pilot.press("r")
        await until(pilot, lambda: "Reject: why?" in screen_text(app))
        await pilot.press("k", "enter", *"two cats", "enter")
        await decided(pilot, app, screen, 3)
        await pilot.press("f")
        await until(pilot, lambda: "Fix which text?" in screen_text(app))
        await pilot.press("j", "j", "j", "enter")
        await until(pilot, lambda: isinstance(app.focused, TextArea))
        await pilot.press("end", "backspace", *" now?", "ctrl+s")
        await until(pilot, lambda: "save this fix" in screen_text(app))
        await pilot.press("enter")
        await decided(pilot, app, screen, 4)
        await pilot.press("a")
        await until(pilot, lambda: "All rows are decided" in screen_text(app))
        await pilot.press("u")
        await decided(pilot, app, screen, 4)

    drive(stage.app(), script, size)
    assert [(d.choice, d.reason) for d in decisions(stage)] == [
        ("accept", ""),
        ("reject", "question"),
        ("reject", "two cats"),
        ("fix", ""),
    ]
    assert decisions(stage)[3].corrections == {"question": "What color is the cat now?"}


def test_cancelling_a_dialog_decides_nothing(stage: Stage, clash: Path) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await opened(pilot, app)
        for keys in (
            ("r", "escape"),
            ("f", "escape"),
            ("f", "enter", "escape", "escape"),
            ("r", "k", "enter", "escape"),
        ):
            for key in keys:
                await pilot.press(key)
                await pilot.pause()
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        await pilot.press("space", "1")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))

    drive(stage.app(), script)
    assert decisions(stage) == []


@pytest.mark.slow
def test_two_people_disagree_and_a_third_decides(stage: Stage, clash: Path) -> None:
    async def reviews(pilot: Pilot[Any], app: RashomonApp, name: str, reject: int) -> None:
        screen = await opened(pilot, app, name)
        for number in range(5):
            if number == reject:
                await pilot.press("r")
                await until(pilot, lambda: "Reject: why?" in screen_text(app))
                await pilot.press("enter")
            else:
                assert "ann" not in screen_text(app) or name == "ann", "nobody sees another's decisions"
                await pilot.press("a")
            await decided(pilot, app, screen, number + 1)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await reviews(pilot, app, "ann", 1)
        await pilot.press("D")
        await until(pilot, lambda: "Error" in screen_text(app))
        await pilot.press("escape")
        await reviews(pilot, app, "bob", 3)
        screen = await opened(pilot, app, "cat")
        await pilot.press("D")
        await until(pilot, lambda: "0 of 2 decided" in screen_text(app) and screen._text.displayed)
        assert "ann: reject (conflicting caption)" in screen_text(app)
        assert "bob: accept" in screen_text(app)
        await pilot.press("a")
        await decided(pilot, app, screen, 1)

    drive(stage.app(), script)
    assert [(d.reviewer, d.choice) for d in decisions(stage) if d.adjudication] == [("cat", "accept")]


def test_media_that_cannot_be_played_are_named_and_the_row_can_be_rejected(stage: Stage, tmp_path: Path) -> None:
    source = write_source(tmp_path / "source", [row("one", PLAIN)])
    (source / "clotho" / "bark.wav").unlink()
    out = stage.workspace.build_folder("contra4")
    Contra4().build([("published", str(source))], out, BuildOptions())
    for media in next(iter(Build.open(out).rows()))["scenes"]:
        if media["modality"] == "video":
            (out / "media" / (media["media"]["sha256"] + media["media"]["suffix"])).write_bytes(b"no video")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await until(pilot, lambda: "Scene D, video: video" in screen_text(app) and "3D model: 3D" in screen_text(app))
        text = screen_text(app)
        assert "! Scene B, audio: " in text, "the sound that the build lacks"
        assert "not the one that was built" in text, "the damaged video"
        assert "Scene A, image: image, jpg" in text
        assert "Scene C, 3D model: 3D model" in text, text
        await pilot.press("r")
        await until(pilot, lambda: "applies to none" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: "All rows are decided" in screen_text(app))
        assert screen.session is not None

    drive(stage.app(), script, (120, 60))
    assert decisions(stage, "contra4")[0].reason == "applies to none (N/A)"


def test_a_build_that_changed_since_and_a_name_in_use_are_refused(stage: Stage, clash: Path, tmp_path: Path) -> None:
    async def refused(pilot: Pilot[Any], app: RashomonApp, words: str) -> None:
        app.open_screen("review")
        await until(pilot, lambda: "Review which build?" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: "Reviewer" in screen_text(app))
        await pilot.press("ctrl+u", *"ann", "enter")
        await until(pilot, lambda: words in " ".join(screen_text(app).split()))
        await pilot.press("escape")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await pilot.press("a")
        await decided(pilot, app, screen, 1)
        held = pytest.raises(StoreError, match="another session")
        with ReviewStore.open(stage.path / "reviews" / "clash") as store, held, store.session("ann"):
            pass
        await pilot.press("1")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        with ReviewStore.open(stage.path / "reviews" / "clash") as store, store.session("ann"):
            await refused(pilot, app, "another session")
        source = published_folder(tmp_path / "other", [published_row(number) for number in (7, 8)])
        Clash().build([("published", str(source))], clash, BuildOptions(replace=True))
        await refused(pilot, app, "has changed since")

    drive(stage.app(), script)
    assert len(decisions(stage)) == 1


def test_no_key_that_works_everywhere_decides() -> None:
    everywhere = {key for command in commands_of("everywhere") for key in command.keys.split(",")}
    for command in commands_of("review"):
        assert not everywhere & set(command.keys.split(","))
