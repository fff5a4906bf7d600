"""The screen of question sets: the history of one, and a model tried in five keys."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from app.store.tried_models import read_tried
from app.store.workspace import Workspace
from app.tui.screens.sets_screen import SetsScreen, _models_here
from app.tui.tui_app import RashomonApp
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.command_dialog import CommandDialog
from app.tui.widgets.dialogs import ErrorDialog
from tests.app.commands.results.test_try_command import build, tried
from tests.support.command import Rashomon
from tests.support.demo import FOUR_BIT
from tests.support.tui_stage import SIZES, drive, screen_text, until
from tests.tui.conftest import Snapshot


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a set that two models have answered; here they are policies, given another name."""
    rashomon = Rashomon(tmp_path_factory.mktemp("sets"))
    build(rashomon)
    tried(rashomon, "policy:always-text", "--against", "policy:always-image", "--trust", "text")
    return rashomon.home


@pytest.fixture
def app(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RashomonApp:
    monkeypatch.setattr("app.compare.question_sets.question_set_history.SetRun.is_model", True)
    monkeypatch.setattr("app.tui.screens.sets_screen._models_here", lambda workspace: [])
    shutil.copytree(home / "workspace", tmp_path / "workspace", symlinks=True)
    return RashomonApp(Workspace(tmp_path / "workspace"))


async def to_sets(pilot: Pilot[Any], app: RashomonApp, text: str) -> None:
    await pilot.press("f10")
    await until(pilot, lambda: isinstance(app.screen, SetsScreen) and text in screen_text(app))


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_the_history_of_a_set(size: tuple[int, int], app: RashomonApp, snapshot: Snapshot) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_sets(pilot, app, "better")
        await snapshot(app, "sets")

    drive(app, script, size)


def test_no_set(tmp_path: Path) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_sets(pilot, app, "no question sets yet")
        await pilot.press("t", "a")
        assert isinstance(app.screen, SetsScreen)

    drive(RashomonApp(Workspace(tmp_path)), script)


def test_a_model_is_tried_in_five_keys(app: RashomonApp) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_sets(pilot, app, "better")
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, CommandDialog) and "always-text" in screen_text(app))
        await pilot.press("y")
        await until(pilot, lambda: "Better than policy:always-image" in screen_text(app))
        await until(pilot, lambda: "✓ done" in screen_text(app))

    drive(app, script)


def test_an_untried_set_takes_a_typed_model_which_is_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.tui.screens.sets_screen._models_here", lambda workspace: [])
    rashomon = Rashomon(tmp_path)
    build(rashomon)
    app = RashomonApp(Workspace(rashomon.workspace))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_sets(pilot, app, "charts")
        for typed in ("--help", "policy:always-text"):
            await pilot.press("t")
            await until(pilot, lambda: isinstance(app.screen, ChoiceDialog) and app.screen.displayed)
            await pilot.press(*typed, "enter")
            await until(pilot, lambda: isinstance(app.screen, CommandDialog) and app.screen.displayed)
            await pilot.press("y")
            await until(pilot, lambda: "✓ done" in screen_text(app) or "✗" in screen_text(app))
            assert "Usage" not in screen_text(app)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, SetsScreen))
        assert len(list((app.workspace.runs_folder).iterdir())) == 1

    drive(app, script)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_the_line_to_type_in_is_on_display_below_many_models(
    size: tuple[int, int], app: RashomonApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "app.tui.screens.sets_screen._models_here", lambda workspace: [f"org/model-{n}" for n in range(40)]
    )

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_sets(pilot, app, "better")
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog) and "Esc cancels" in screen_text(app))

    drive(app, script, size)


def test_fetched_models_and_those_nearby_are_listed(tmp_path: Path) -> None:
    assert str(FOUR_BIT) in _models_here(Workspace(tmp_path))


def test_the_incumbent_is_chosen_and_forgotten(app: RashomonApp) -> None:
    folder = app.workspace.path / "sets" / "charts"

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_sets(pilot, app, "the incumbent")
        await pilot.press("a", "enter")
        await until(pilot, lambda: "the incumbent" not in screen_text(app) and "better" in screen_text(app))
        assert read_tried(folder).incumbent == ""
        await pilot.press("a", "down", "enter")
        await until(pilot, lambda: "the incumbent" in screen_text(app))
        assert read_tried(folder).incumbent.startswith("policy:")

    drive(app, script)


def test_a_hostile_memory_is_an_error_in_words(app: RashomonApp) -> None:
    (app.workspace.path / "sets" / "charts" / "tried.json").write_text('{"incumbent": "\x1b]52;c;aGk=\x07"}')

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_sets(pilot, app, "tried.json")
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog) and "tried.json" in screen_text(app))
        assert "\x1b]52" not in screen_text(app)

    drive(app, script)
