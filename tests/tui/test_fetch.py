"""Fetching models, building and adopting from the interface, with real processes and a Hub on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from app.tui.screens.fetch_screen import FetchScreen
from app.tui.screens.runs_screen import RunsScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.command_dialog import CommandDialog
from app.tui.widgets.command_dialog import Stage as DialogStage
from app.tui.widgets.dialogs import Confirm, ErrorDialog
from benchmarks.fetch.hub_cache import hub_cache
from mlx_backends.model_recommendation import recommend_models
from mlx_backends.models import memory_and_cache_sizes
from tests.app.commands.data_and_models.test_get import tiny_model
from tests.support.command import ROOT
from tests.support.fake_hub import FakeHub
from tests.support.trust import receive
from tests.support.tui_computed import press
from tests.support.tui_stage import BOTH, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """Yield a Hub with one tiny model, for the processes that the interface starts."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with FakeHub().running() as running:
        for name, value in running.variables.items():
            monkeypatch.setenv(name, value)
        tiny_model(running)
        yield running


async def asked_for(pilot: Pilot[Any], app: RashomonApp, name: str = "org/tiny") -> CommandDialog:
    """Type a model's name on the screen, and return the dialog that says what it would fetch."""
    await press(pilot, "f6")
    assert isinstance(app.screen, FetchScreen)
    await pilot.press("m")
    await until(pilot, lambda: isinstance(app.focused, Input))
    await pilot.press(*name, "enter")
    await until(pilot, lambda: isinstance(app.screen, CommandDialog))
    dialog = app.screen
    assert isinstance(dialog, CommandDialog)
    await until(pilot, lambda: dialog.stage in (DialogStage.ASKING, DialogStage.DONE))
    return dialog


async def fetching(pilot: Pilot[Any], app: RashomonApp, hub: FakeHub) -> CommandDialog:
    """Agree to a fetch, and return its dialog once the weights have been asked for."""
    dialog = await asked_for(pilot, app)
    await until(pilot, lambda: dialog.displayed)
    await pilot.press("y")
    await until(pilot, lambda: bool(hub.gets("model.safetensors")) and dialog.displayed)
    return dialog


@pytest.mark.parametrize("size", BOTH)
def test_what_can_be_fetched_and_built(
    size: tuple[int, int], stage: Stage, snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(memory_and_cache_sizes, "_available", lambda _: (12_700_000_000, "a Mac with 16 GB"))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await press(pilot, "f6")
        await until(pilot, lambda: "Qwen3-VL-4B" in screen_text(app))
        assert screen_text(app).count("recommended") == 3
        await snapshot(app, "fetch")

    drive(stage.app(), script, size)


@pytest.mark.slow
def test_a_model_is_fetched_after_its_size_was_read(hub: FakeHub, stage: Stage) -> None:
    """Beside the model's name: f6, m, Enter and y."""

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        dialog = await asked_for(pilot, app)
        assert "org/tiny" in screen_text(app)
        assert not hub.gets("model.safetensors"), "nothing is fetched before it was agreed to"
        await until(pilot, lambda: dialog.displayed)
        await pilot.press("y")
        await until(pilot, lambda: dialog.stage is DialogStage.DONE)
        assert "fetched org/tiny" in screen_text(app)
        assert list(hub_cache().glob("models--org--tiny/snapshots/*/model.safetensors"))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FetchScreen))

    drive(stage.app(), script)


@pytest.mark.slow
def test_a_recommended_model_says_why_before_it_is_fetched(
    hub: FakeHub, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_and_cache_sizes, "_available", lambda _: (12_700_000_000, "a Mac with 16 GB"))
    first = recommend_models(12_700_000_000)[0]
    hub.repos[first.model.id] = hub.repos["org/tiny"]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await press(pilot, "f6")
        await until(pilot, lambda: "recommended" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CommandDialog) and app.screen.stage is DialogStage.ASKING)
        text = " ".join(screen_text(app).split())
        assert first.reason in text
        assert f"licence {first.model.licence}" in text

    drive(stage.app(), script, (120, 40))


@pytest.mark.slow
def test_a_fetch_is_stopped_and_resumed(hub: FakeHub, stage: Stage) -> None:
    hub.faults["model.safetensors"] = ["wait 10"]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        dialog = await fetching(pilot, app, hub)
        await until(pilot, lambda: "files, " in screen_text(app) and "/s" in screen_text(app))  # of the file that waits
        await pilot.press("x")
        await until(pilot, lambda: dialog.stage is DialogStage.DONE)
        assert "stopped" in screen_text(app)
        await pilot.press("escape", "escape")
        dialog = await asked_for(pilot, app)
        await until(pilot, lambda: dialog.displayed)
        await pilot.press("y")
        await until(pilot, lambda: dialog.stage is DialogStage.DONE)
        assert "fetched org/tiny" in screen_text(app)

    drive(stage.app(), script)


@pytest.mark.slow
def test_what_cannot_be_fetched_is_said_and_nothing_starts(hub: FakeHub, stage: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        dialog = await asked_for(pilot, app, "org/[b]none")
        assert dialog.stage is DialogStage.DONE
        assert "rashomon:" in screen_text(app)
        await until(pilot, lambda: dialog.displayed)
        await pilot.press("y")
        assert dialog.stage is DialogStage.DONE, "there is nothing to agree to"
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))

    drive(stage.app(), script)


@pytest.mark.slow
def test_a_fetch_goes_on_without_its_dialog(hub: FakeHub, stage: Stage) -> None:
    hub.faults["model.safetensors"] = ["wait 10"]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await fetching(pilot, app, hub)
        assert app.processes.running_count() == 1, "quitting asks about it"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FetchScreen))
        assert app.processes.running_count() == 1
        hub.released.set()
        await until(pilot, lambda: app.processes.running_count() == 0)

    drive(stage.app(), script)


def test_a_benchmark_is_built_only_after_a_yes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started before the question is on the screen; what it starts ends with a message."""
    started: list[list[str]] = []
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr("app.fetch.fetched_files_record.fetch_state", lambda folder: "fetched")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        start = app.processes.start_job

        def counted(arguments: Any) -> Any:
            started.append(list(arguments))
            return start(arguments)

        monkeypatch.setattr(app.processes, "start_job", counted)
        await press(pilot, "f6")
        await until(pilot, lambda: "builds it" in screen_text(app))
        await pilot.press("tab", "enter")
        await until(pilot, lambda: isinstance(app.screen, CommandDialog))
        dialog = app.screen
        assert isinstance(dialog, CommandDialog)
        await until(pilot, lambda: dialog.displayed)
        assert not started
        await pilot.press("y")
        await until(pilot, lambda: dialog.stage is DialogStage.DONE)
        assert started == [["build", "cmc-bench"]]
        assert "rashomon:" in screen_text(app), "there is no data"

    drive(stage.app(), script)
    assert not stage.workspace.build_folder("cmc-bench").exists()


def test_a_run_from_elsewhere_is_adopted_after_a_yes(stage: Stage, tmp_path: Path) -> None:
    folder = Stage(tmp_path / "other").run("theirs", done=6)
    receive(folder)

    async def place(pilot: Pilot[Any], app: RashomonApp, text: str) -> None:
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.focused, Input))
        app.screen.query_one(Input).value = text
        await pilot.press("enter")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await press(pilot, "f6")
        await until(pilot, lambda: isinstance(app.screen, FetchScreen))
        await place(pilot, app, str(tmp_path / "nowhere"))
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FetchScreen))
        await place(pilot, app, str(folder))
        await until(pilot, lambda: isinstance(app.screen, Confirm) and "theirs" in screen_text(app))
        assert not stage.workspace.run_names()
        await pilot.press("y")
        await until(pilot, lambda: bool(stage.workspace.run_names()))
        await until(pilot, lambda: isinstance(app.screen, FetchScreen))
        await place(pilot, app, str(folder))
        await until(pilot, lambda: "already, as theirs" in screen_text(app))

    drive(stage.app(), script)
    assert [run.own for run in stage.workspace.summaries()] == [True]
