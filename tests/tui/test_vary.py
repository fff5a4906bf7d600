"""Vary: a build repeated under levels or with k passages, by keys, with what is wrong said before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from app.tui.screens.fetch_screen import FetchScreen
from app.tui.screens.new_run_screen import NewRunScreen
from app.tui.screens.vary_screen import VaryScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.command_dialog import CommandDialog
from app.tui.widgets.command_dialog import Stage as DialogStage
from app.tui.widgets.dialogs import Confirm, ErrorDialog
from benchmarks.build import Build
from benchmarks.varied_names import MANIFEST_KEY
from tests.support.command import ROOT
from tests.support.demo import HeldOutSet
from tests.support.tui_computed import until_computed, until_settled
from tests.support.tui_stage import BOTH, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot


@pytest.fixture
def desk(stage: Stage, charts: HeldOutSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Return a workspace with CMC-Bench built, and no models of this machine."""
    build = stage.workspace.build_folder("cmc-bench")
    build.parent.mkdir(parents=True)
    build.symlink_to(charts.build.path)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return stage


async def opened(pilot: Pilot[Any], app: RashomonApp) -> VaryScreen:
    await pilot.press("f9")
    await until(pilot, lambda: isinstance(app.screen, VaryScreen))
    screen = app.screen
    assert isinstance(screen, VaryScreen)
    await until(pilot, lambda: screen._field("build").value)
    await pilot.pause()
    return screen


def fill(screen: VaryScreen, **values: str) -> None:
    for key, value in values.items():
        screen._field(key.replace("_", "-")).value = value


async def counted(pilot: Pilot[Any], app: RashomonApp) -> CommandDialog:
    """Ask for the build, and return the dialog once it has counted the calls."""
    await pilot.press("ctrl+r")
    await until(pilot, lambda: isinstance(app.screen, CommandDialog))
    dialog = app.screen
    assert isinstance(dialog, CommandDialog)
    await until(pilot, lambda: dialog.stage in (DialogStage.ASKING, DialogStage.DONE))
    await until(pilot, lambda: dialog.displayed)
    return dialog


@pytest.mark.slow
def test_factors_are_crossed_counted_built_and_run(desk: Stage) -> None:
    varied = desk.workspace.build_folder("cmc-bench-varied")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        fill(screen, blur="0,1", text_source="none,forum post", limit="2", conditions="image-correct,text-only")
        await until(pilot, lambda: "4 cells: 2 of blur × 2 of text-source" in screen_text(app))
        dialog = await counted(pilot, app)
        assert dialog.stage is DialogStage.ASKING
        assert "2 examples in 4 cells: 24 instances, at most 16 calls" in " ".join(
            screen_text(app).replace("│", " ").split()
        )
        assert not varied.exists()
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert Build.open(varied).manifest[MANIFEST_KEY]["instances"] == 24
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen))
        form = app.screen
        assert isinstance(form, NewRunScreen)
        await until(pilot, lambda: form.choices.contents is not None)
        assert form.choices.contents is not None
        assert form.choices.contents.strata["blur"] == {"0": 12, "1": 12}

    drive(desk.app(), script, (80, 24))


@pytest.mark.slow
@pytest.mark.parametrize("size", BOTH)
def test_the_screen(size: tuple[int, int], desk: Stage, snapshot: Snapshot) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        fill(screen, blur="0,1,2", out="BUILD")
        app.workspace.__dict__.update(path=Path("WORKSPACE"))
        fill(screen, order="image-first,text-first")
        await until(pilot, lambda: "6 cells" in screen_text(app))
        await until_settled(pilot)
        await snapshot(app, "vary")
        await pilot.press("ctrl+n")
        await until(pilot, lambda: "13 settings" in screen_text(app))
        await until_settled(pilot)
        await snapshot(app, "vary-passages")

    drive(desk.app(), script, size)


def test_what_is_wrong_is_said_and_nothing_starts(desk: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        for values in ({"blur": "0"}, {"blur": "1,1"}, {"blur": "0,x"}, {"blur": "", "limit": "two"}):
            fill(screen, **values)
            await until(pilot, lambda: screen.problem)
            assert "✗ " in screen_text(app)
            await pilot.press("ctrl+r")
            assert app.screen is screen
        fill(screen, limit="")
        await until(pilot, lambda: not screen.problem)
        await pilot.press("ctrl+r")  # without a factor
        assert app.screen is screen
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("enter")
        assert screen._typed("build") == "cmc-bench"
        fill(screen, blur="0,1", build="nowhere")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog))
        await pilot.press("escape", "ctrl+n")
        fill(screen, wrong="3", passages="2")
        await until(pilot, lambda: screen.problem)
        assert not list(desk.path.glob("jobs/*"))

    drive(desk.app(), script)


@pytest.mark.slow
def test_k_passages_are_built_from_fetch_and_a_refused_design_is_explained(desk: Stage) -> None:
    built = desk.workspace.build_folder("k-passages")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("f6")
        await until(pilot, lambda: isinstance(app.screen, FetchScreen))
        await until_computed(pilot)
        await pilot.press("tab", "end", "enter")
        await until(pilot, lambda: isinstance(app.screen, VaryScreen))
        screen = app.screen
        assert isinstance(screen, VaryScreen)
        assert screen.section == "passages"
        await until(pilot, lambda: screen._field("build").value)
        fill(screen, images="10", build=str(built))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog))  # there is no such build
        await pilot.press("escape")
        fill(screen, images="", build="cmc-bench", passages="1,2", wrong="0,1", limit="3")
        dialog = await counted(pilot, app)
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert Build.open(built).manifest["calls"] == 15
        await pilot.press("n")
        dialog = await counted(pilot, app)
        assert "Replacing it" in screen_text(app)
        await pilot.press("escape")
        fill(screen, build=str(built))
        dialog = await counted(pilot, app)
        assert dialog.stage is DialogStage.DONE
        assert "is a build of k-passages" in " ".join(screen_text(app).replace("│", " ").split())

    drive(desk.app(), script)


@pytest.mark.slow
def test_a_large_design_is_announced_and_a_build_can_be_stopped(desk: Stage) -> None:
    varied = desk.workspace.build_folder("cmc-bench-varied")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        levels = ",".join(str(step / 10) for step in range(40))
        fill(screen, blur=levels, jpeg="none,90,80,70,60,50")
        await until(pilot, lambda: "240 cells" in screen_text(app))
        dialog = await counted(pilot, app)
        assert "many calls" in screen_text(app)
        await pilot.press("y")
        await until(pilot, lambda: "of 144 examples" in screen_text(app))
        await pilot.press("x")
        await until(pilot, lambda: dialog.stage is DialogStage.DONE)
        assert "stopped" in screen_text(app)
        assert not varied.exists()
        assert not [path for path in varied.parent.iterdir() if path.name.startswith(".")]

    drive(desk.app(), script)
