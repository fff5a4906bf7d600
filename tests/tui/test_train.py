"""Train: a form whose command is displayed while it is typed, and that starts nothing without a confirmation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from app.cli.training_commands import train
from app.engine.training.training_folder import find_training
from app.engine.training.training_spec_and_recipes import TrainingSpec
from app.tui.screens.train_screen import TrainScreen
from app.tui.screens.trainings_screen import TrainingsScreen
from app.tui.tui_app import RashomonApp
from app.tui.tui_processes import Job, RunProcesses
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.command_dialog import CommandDialog
from app.tui.widgets.command_dialog import Stage as DialogStage
from app.tui.widgets.form_field import Field
from tests.support.command import ROOT
from tests.support.demo import FOUR_BIT
from tests.support.trainings import write_training_set
from tests.support.tui_computed import until_settled
from tests.support.tui_stage import BOTH, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot


@pytest.fixture
def desk(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A workspace beside a training set, and no fetched models."""
    (tmp_path / "here").mkdir()
    write_training_set(tmp_path / "here" / "rows")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return stage


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that the interface starts; none of them runs."""
    commands: list[Sequence[str]] = []

    class Ended(Job):
        code = 0

        def output(self) -> str:
            return "t: 4 rows for train\n  memory: about 5.1 GB"

    def start(processes: RunProcesses, arguments: Sequence[str]) -> Job:
        commands.append(arguments)
        return Ended(None, Path(), arguments[0])  # type: ignore[arg-type]

    monkeypatch.setattr(RunProcesses, "start_job", start)
    return commands


async def opened(pilot: Pilot[Any], app: RashomonApp) -> TrainScreen:
    await pilot.press("f8")
    await until(pilot, lambda: isinstance(app.screen, TrainingsScreen))
    await pilot.press("n")
    await until(pilot, lambda: isinstance(app.screen, TrainScreen))
    screen = app.screen
    assert isinstance(screen, TrainScreen)
    await until(pilot, lambda: screen.problem)
    return screen


def fill(screen: TrainScreen, **values: str) -> None:
    for key, value in values.items():
        screen._field(key.replace("_", "-")).value = value


async def asked(pilot: Pilot[Any], app: RashomonApp) -> CommandDialog:
    """Ask for the training, and return the dialog once it has estimated the memory."""
    await pilot.press("ctrl+r")
    await until(pilot, lambda: isinstance(app.screen, CommandDialog))
    dialog = app.screen
    assert isinstance(dialog, CommandDialog)
    await until(pilot, lambda: dialog.stage in (DialogStage.ASKING, DialogStage.DONE))
    await until(pilot, lambda: dialog.displayed)
    return dialog


@pytest.mark.slow
@pytest.mark.parametrize("size", BOTH)
def test_the_screen(size: tuple[int, int], desk: Stage, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ("conflicts: 4 rows for train, 2 rows for validation, 2 updates of 16 rows", "  memory: about 5.1 GB")
    monkeypatch.setattr("app.tui.screens.train_screen._estimate", lambda workspace, spec: "\n".join(lines))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        fill(screen, model="mlx-community/Qwen3-VL-4B-Instruct-4bit", data="rows", recipe="clash-llava", epochs="2")
        app.workspace.__dict__.update(path=Path("WORKSPACE"))
        fill(screen, name="conflicts")
        await until(pilot, lambda: screen.estimate)
        await until_settled(pilot)
        await snapshot(app, "train")

    drive(desk.app(), script, size)


def test_memory_is_displayed_and_nothing_starts_before_the_confirmation(
    desk: Stage, started: list[Sequence[str]]
) -> None:
    options = [f"--model={FOUR_BIT}", "--data=rows", "--name=t", "--rank=8"]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        fill(screen, model=str(FOUR_BIT), data="rows", rank="8", name="t")
        dialog = await asked(pilot, app)
        assert dialog.stage is DialogStage.ASKING
        assert "about 5.1 GB" in screen_text(app)
        await pilot.press("escape")
        assert started == [["train", *options, "--dry-run"]]
        await asked(pilot, app)
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, TrainingsScreen))
        assert started[-1] == ["train", *options]

    drive(desk.app(), script, (80, 24))


def test_what_is_wrong_is_said_and_nothing_starts(desk: Stage, started: list[Sequence[str]]) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        for values in (
            {"model": "m"},
            {"data": "rows", "rank": "0"},
            {"rank": "eight"},
            {"rank": "8", "recipe": "clash"},
            {"recipe": "", "name": "my name"},
            {"name": "", "learning_rate": "nan"},
        ):
            fill(screen, **values)
            await until(pilot, lambda: screen.problem)
            await pilot.pause()
            assert "✗ " in screen_text(app)
            await pilot.press("ctrl+r")
        assert isinstance(app.screen, TrainScreen)
        fill(screen, learning_rate="1e-5")
        await until(pilot, lambda: not screen.problem)

    drive(desk.app(), script, (80, 24))
    assert not started


def test_training_sets_and_models_are_offered(desk: Stage, tmp_path: Path) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: "no model that can be trained" in screen_text(app))
        await pilot.press("tab", "ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("enter")
        assert screen._field("data").value == str(tmp_path / "here" / "rows")

    drive(desk.app(), script, (80, 24))


def test_the_form_has_every_option_of_the_command_and_of_the_spec(desk: Stage) -> None:
    """An option that decides no training is named here; a new one must be in the form, and is so by itself."""
    others = {"resume", "dry_run", "display", "force", "accept_engine", "wait"}
    options = {str(parameter.name): parameter for parameter in train.params if parameter.name not in others}
    assert options.keys() == TrainingSpec.model_fields.keys()

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        assert {field.key.replace("-", "_") for field in screen.query(Field)} == options.keys()
        assert "derived" not in {field.query_one(Input).placeholder for field in screen.query(Field)}
        assert all(str(field.query_one(".hint", Static).content) for field in screen.query(Field))

    drive(desk.app(), script, (80, 24))


def test_every_typed_value_is_an_argument_that_the_command_takes(desk: Stage, started: list[Sequence[str]]) -> None:
    typed = {
        "objective": "orpo",
        "batch_size": "2",
        "steps": "3",
        "skip_unusable": "on",
        "gradient_checkpointing": "off",
        "early_stopping": "on",
        "rates": "1e-4, 3e-4",
    }

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        fill(screen, model="m", data="rows", **typed)
        await until(pilot, lambda: not screen.problem)
        arguments = screen._options()
        values = train.make_context("train", list(arguments)).params
        assert (values["objective"], values["batch_size"], values["steps"]) == ("orpo", 2, 3)
        assert (values["skip_unusable"], values["gradient_checkpointing"], values["early_stopping"]) == (
            True,
            False,
            True,
        )
        assert values["rates"] == "1e-4, 3e-4"
        fill(screen, skip_unusable="off")
        await until(pilot, lambda: not screen.problem and len(screen._options()) == len(arguments) - 1)
        fill(screen, early_stopping="perhaps")
        await until(pilot, lambda: screen.problem)

    drive(desk.app(), script, (120, 40))
    assert not started


@pytest.mark.parametrize("size", BOTH)
def test_the_estimate_is_beside_the_form_once_the_values_hold_still(size: tuple[int, int], desk: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        fill(screen, model=str(FOUR_BIT), data="rows", rank="2", steps="7")
        await until(pilot, lambda: screen.estimate)
        assert "7 updates of 4 rows" in screen.estimate
        assert "memory: about 0." in screen.estimate
        assert "disk: at most 0." in screen.estimate
        assert "7 updates" in " ".join(screen_text(app).split())
        fill(screen, data="missing")
        await until(pilot, lambda: "is not a training set" in screen.estimate)

    drive(desk.app(), script, size)


@pytest.mark.slow
def test_a_training_is_started_and_goes_to_its_end(desk: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app)
        fill(screen, model=str(FOUR_BIT), data="rows", rank="2", name="t", epochs="2")
        dialog = await asked(pilot, app)
        assert dialog.stage is DialogStage.ASKING
        assert "memory: about 0." in screen_text(app)
        await pilot.press("y")
        await until(pilot, lambda: "nothing can be told" in screen_text(app))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, TrainScreen))
        assert isinstance(app.screen, TrainScreen)
        screen = app.screen
        fill(screen, model=str(FOUR_BIT), data="rows", rank="2", name="u", epochs="20")
        await until(pilot, lambda: "  time: about " in screen.estimate)
        assert "s a row of t" in screen.estimate

    drive(desk.app(), script, (120, 40))
    assert find_training(desk.workspace, "t").state()[0] == "done"
