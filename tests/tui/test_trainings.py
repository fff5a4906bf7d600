"""The screen of trainings: the list, the curve that grows, stopping and resuming."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from app.engine.training import training_supervisor
from app.engine.training.training_folder import create_training
from app.engine.training.training_log import LogWriter, read_curve
from app.engine.training.training_spec_and_recipes import training_spec
from app.engine.training.training_verdict import verdict_of
from app.store.file_locks import FileLock
from app.tui.screens.trainings_screen import TrainingsScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.loss_plot import MARK, loss_plot
from mlx_backends.training_settings import RateReport, StepReport, ValidationReport
from tests.support.trainings import STEPS, append_updates, ended_curve, staged_training
from tests.support.tui_stage import SIZES, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot


async def to_trainings(pilot: Pilot[Any], app: RashomonApp, text: str) -> None:
    app.clear_notifications()
    await pilot.press("f8")
    await until(pilot, lambda: isinstance(app.screen, TrainingsScreen) and text in screen_text(app))


def held(folder: Path) -> FileLock:
    lock = FileLock(folder / "lock")
    assert lock.acquire(f"process {os.getpid()}")
    return lock


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_trainings_in_every_state(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    staged_training(stage.workspace, "conflicts-first", created=1.0)
    note = "the training diverged: the loss is not a number at step 41"
    staged_training(stage.workspace, "conflicts-diverged", state="failed", note=note, done=40, created=2.0)
    staged_training(stage.workspace, "conflicts-stopped", state="stopped", done=90, created=3.0)
    running = staged_training(stage.workspace, "conflicts-unfiltered", state="training", done=130, created=4.0)
    lock = held(running.path)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_trainings(pilot, app, "┤")
        await until(pilot, lambda: "1,200 tokens/s" in screen_text(app))
        await snapshot(app, "trainings")

    drive(stage.app(), script, size)
    lock.release()


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_no_trainings(size: tuple[int, int], stage: Stage, snapshot: Snapshot) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_trainings(pilot, app, "no trainings yet")
        await snapshot(app, "trainings-empty")

    drive(stage.app(), script, size)


def test_the_curve_grows_with_the_log(stage: Stage) -> None:
    training = staged_training(stage.workspace, "growing", state="training", done=10)
    lock = held(training.path)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_trainings(pilot, app, f"10/{STEPS}")
        before = str(app.screen.query_one("#curve", Static).content)
        assert MARK not in before
        append_updates(training.path, 11, 60)
        await until(pilot, lambda: f"60/{STEPS}" in screen_text(app))
        await until(pilot, lambda: str(app.screen.query_one("#curve", Static).content).count(MARK) == 3)

    drive(stage.app(), script)
    lock.release()


@pytest.mark.parametrize(
    ("base", "words"),
    [(2.9, "use best, update 120"), (0.1, "do not use it: worse than the base"), (0.731, "nothing can be told")],
)
def test_the_verdict_is_displayed_in_words(stage: Stage, base: float, words: str) -> None:
    training = staged_training(stage.workspace, "ended", state="done")
    best = read_curve(training.path).best
    training.note("done", verdict=verdict_of(ended_curve(base, best)))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_trainings(pilot, app, words)
        state = {2.9: "done", 0.1: "do not use", 0.731: "cannot tell"}[base]
        assert state in screen_text(app)

    drive(stage.app(), script, SIZES["80x24"])


def test_the_losses_of_learning_rates_are_displayed(stage: Stage) -> None:
    spec = training_spec({"model": "m", "data": "/data", "rates": "1e-4,1e-3", "name": "searching"})
    training = create_training(stage.workspace, "searching", spec, spec.identity(), STEPS)
    writer = LogWriter(training.path, 0)
    writer.write(ValidationReport(0, 2.9, False, 1.0))
    writer.write(RateReport(1e-4, 10, 1.25, 1.0))
    writer.write(StepReport(1, 2.5, 4, 40, 1.0, 1e-3, 1, 2.5, trial=1e-3))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_trainings(pilot, app, "trying learning rate 0.001: update 1")
        assert "0.0001: 1.25" in screen_text(app)
        writer.write(RateReport(1e-3, 10, None, 1.0))
        await until(pilot, lambda: "learning rate 0.0001, which had the lowest" in screen_text(app))

    drive(stage.app(), script, SIZES["120x40"])


def test_stop_and_resume_ask_first(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []
    started: list[list[str]] = []
    monkeypatch.setattr(
        "app.tui.screens.trainings_screen.stop_training", lambda training: stopped.append(training.name), raising=True
    )
    monkeypatch.setattr(
        "app.tui.tui_processes.RunProcesses.start", lambda self, arguments: started.append([*arguments])
    )
    assert callable(training_supervisor.stop_training)
    staged_training(stage.workspace, "idle", state="stopped", done=20, created=1.0)
    running = staged_training(stage.workspace, "running", state="training", done=20, created=2.0)
    lock = held(running.path)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_trainings(pilot, app, "idle")
        await pilot.press("R")  # it is running: nothing to resume
        await pilot.press("x", "n")
        assert not stopped
        await pilot.press("x", "y")
        assert stopped == ["running"]
        await pilot.press("j")
        await until(pilot, lambda: app.screen.check_action("resume", ()) is True)
        await pilot.press("R", "n")
        assert not started
        await pilot.press("R", "y")
        assert started == [["train", "--resume", "idle"]]

    drive(stage.app(), script)
    lock.release()


def test_hostile_names_and_notes_are_displayed_literally(stage: Stage) -> None:
    note = "[/nope] [@click=app.exit]x[/] \x1b]52;c;aGk=\x07"
    training = staged_training(stage.workspace, "a-training", state="failed", note=note, done=3)
    broken = training.path.parent / "broken"
    broken.mkdir()
    (broken / "training.json").write_text("{")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await to_trainings(pilot, app, "[/nope]")
        assert "\x1b]52" not in screen_text(app)

    drive(stage.app(), script)


@pytest.mark.slow
@pytest.mark.parametrize("width", [0, 10, 20, 21, 80, 200])
@pytest.mark.parametrize("height", [0, 3, 4, 12])
@pytest.mark.parametrize("count", [0, 1, 2, 5000])
def test_plot_keeps_to_its_size(width: int, height: int, count: int) -> None:
    losses = [(step, 1000.0 / step) for step in range(1, count + 1)]
    lines = loss_plot(losses, losses[-1:], count * 2, width, height)
    assert len(lines) in (0, height)
    assert all(line.cell_length <= width for line in lines)
    assert bool(lines) == (count > 0 and width >= 21 and height >= 4)


def test_plot_bears_steps_of_a_hostile_log() -> None:
    assert len(loss_plot([(-(10**30), 1.0), (10**30, -1e300), (3, 1e300)], [(0, 2.0)], 1, 80, 12)) == 12
