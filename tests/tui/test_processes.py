"""Real processes: a run started from the interface outlives it; a worker that is killed is told of and can go on."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from app.engine.run_control import worker_pid
from app.store.run_summary import read_summary
from app.store.workspace import Workspace
from app.tui.screens.live_screen import LiveScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.dialogs import Confirm, StopDialog
from app.tui.widgets.virtual_table import VirtualTable
from tests.support.charts import draw_sources
from tests.support.command import ROOT, Rashomon
from tests.support.tui_stage import PATIENCE, Stage, Staged, drive, screen_text, until

RUN = "watched"
SPEC = ["batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", RUN]
SLOW = {"seconds": (0.03, 0.03)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("built")
    draw_sources(home / "sources")
    Rashomon(home).run("build", "cmc-bench", "--source", home / "sources")
    return home / "workspace" / "benchmarks" / "cmc-bench"


@pytest.fixture
def rashomon(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rashomon]:
    """Return a home of its own, whose environment what the interface starts will have; its workers are ended afterwards."""
    program = Rashomon(tmp_path, SLOW)
    for name, value in program.environment.items():
        monkeypatch.setenv(name, value)
    yield program
    with suppress(ProcessLookupError):
        if pid := worker_pid(program.workspace / "runs" / RUN):
            os.kill(pid, signal.SIGTERM)


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


@pytest.mark.slow
def test_started_watched_killed_and_resumed_by_keys(rashomon: Rashomon, built: Path) -> None:
    app = Staged(Workspace(rashomon.workspace))
    folder = rashomon.workspace / "runs" / RUN

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.processes.start([*SPEC, "--data", str(built), "--restarts", "0"])
        await until(pilot, lambda: "● running" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and "Newest answer: " in screen_text(app))
        await until(pilot, lambda: "answers/min" in screen_text(app))
        pid = worker_pid(folder)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(pilot, lambda: "was killed or crashed" in screen_text(app) and "R Resume" in screen_text(app))
        await until(pilot, lambda: "is not restarted" in screen_text(app) or not app.processes.running_count())
        await until(pilot, lambda: type(app.screen).__name__ == "ErrorDialog")
        assert "SIGKILL" in (rashomon.workspace / "runs" / RUN / "worker.log").read_text()
        await pilot.press("escape", "R", "y")
        await until(pilot, lambda: "● running" in screen_text(app) and worker_pid(folder) not in (None, pid))
        await pilot.press("p")
        await until(pilot, lambda: "‖ paused" in screen_text(app))
        await pilot.press("R")
        await until(pilot, lambda: "✓ done" in screen_text(app))

    drive(app, script)
    run = read_summary(folder)
    assert (run.state, run.done) == ("done", run.total)


def test_a_run_that_is_about_to_start_is_not_started_twice(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.run("mine", state="interrupted", done=20)
    started: list[subprocess.Popen[bytes]] = []
    begin = subprocess.Popen

    def wait(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        started.append(begin(["sleep", "600"], **options))
        return started[-1]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: bool(app.snapshot.runs))
        monkeypatch.setattr("app.tui.tui_processes.subprocess.Popen", wait)
        await pilot.press("R", "y")
        await until(pilot, lambda: "starts by itself" in screen_text(app))
        await pilot.press("R")
        await until(pilot, lambda: "is about to start" in screen_text(app))
        assert len(started) == 1
        started[0].kill()
        await until(pilot, lambda: type(app.screen).__name__ == "ErrorDialog")
        await pilot.press("escape", "R")
        await until(pilot, lambda: isinstance(app.screen, Confirm))

    try:
        drive(stage.app(), script)
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_stopped_run_says_so_and_a_failed_command_is_reported(rashomon: Rashomon, built: Path) -> None:
    app = Staged(Workspace(rashomon.workspace))
    folder = rashomon.workspace / "runs" / RUN

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.processes.start(["batch", "--benchmark", "cmc-bnch", "--model", "policy:uniform"])
        await until(pilot, lambda: "did you mean 'cmc-bench'" in screen_text(app).replace("\n", " "))
        await pilot.press("escape")
        app.processes.start([*SPEC, "--data", str(built)])
        await until(pilot, lambda: "● running" in screen_text(app))
        await pilot.press("x", "y")
        await until(pilot, lambda: "¦ interrupted" in screen_text(app))
        await until(pilot, lambda: not app.processes.running_count())
        assert "without a message" not in screen_text(app)

    drive(app, script)
    assert read_summary(folder).state == "interrupted"


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "states"), [("y", ["interrupted", "done"]), ("b", ["interrupted", "planned"])])
def test_stopping_a_run_or_its_whole_batch(answer: str, states: list[str], rashomon: Rashomon, built: Path) -> None:
    app = Staged(Workspace(rashomon.workspace))
    spec = [word for word in SPEC if word not in ("--name", RUN)]

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.processes.start([*spec, "--model", "policy:random", "--data", str(built)])
        await until(pilot, lambda: "● running" in screen_text(app) and len(app.snapshot.runs) == 2)
        (running,) = (run for run in app.snapshot.runs if run.active)
        app.screen.query_one(VirtualTable).cursor = [run.name for run in reversed(app.snapshot.runs)].index(
            running.name
        )
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, StopDialog))
        await pilot.press(answer)
        await until(pilot, lambda: not app.processes.running_count())

    drive(app, script)
    runs = sorted((rashomon.workspace / "runs").glob("[a-z]*"), key=lambda run: read_summary(run).done)
    assert sorted(read_summary(run).state for run in runs) == sorted(states)


@pytest.mark.slow
def test_a_worker_that_hangs_is_killed_only_after_a_confirmation(
    rashomon: Rashomon, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = rashomon.home / "hanging"
    program = rashomon.ordered(hangs={"after": 5, "file": str(hanging)})
    for name, value in program.environment.items():
        monkeypatch.setenv(name, value)
    app = Staged(Workspace(rashomon.workspace))

    def is_open(dialog: str) -> bool:
        return type(app.screen).__name__ == dialog

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.processes.start([*SPEC, "--data", str(built)])
        await until(pilot, hanging.exists)
        await until(pilot, lambda: "● running" in screen_text(app))
        for dialog, answer in (("StopDialog", "b"), ("Confirm", "n"), ("Confirm", "y")):
            assert app.processes.running_count()
            await pilot.press("x")
            await until(pilot, partial(is_open, dialog))
            await pilot.press(answer)
            await pilot.pause(1)
        await until(pilot, lambda: not app.processes.running_count())

    drive(app, script)
    assert read_summary(rashomon.workspace / "runs" / RUN).state == "interrupted"


OPEN = (
    "import sys; sys.path.insert(0, sys.argv[1])\n"
    "from app.tui.tui_app import RashomonApp\nfrom app.store.workspace import Workspace\nimport json\n"
    "class Opened(RashomonApp):\n"
    "    def on_mount(self):\n        self.processes.start(json.loads(sys.argv[2]))\n"
    "Opened(Workspace.find()).run()\n"
)


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_a_run_survives_when_the_interface_and_its_terminal_are_killed(
    how: signal.Signals, rashomon: Rashomon, built: Path
) -> None:
    folder = rashomon.workspace / "runs" / RUN
    spec = json.dumps([*SPEC, "--data", str(built)])
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", OPEN, str(ROOT), spec],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    os.close(slave)
    os.set_blocking(master, False)

    def running() -> bool:
        with suppress(BlockingIOError, OSError):
            os.read(master, 1 << 16)
        return folder.exists() and read_summary(folder).state == "running" and read_summary(folder).done > 2

    wait_for(running)
    os.killpg(process.pid, how)
    os.close(master)  # the terminal is gone, too
    process.wait()
    seen = read_summary(folder).done
    wait_for(lambda: read_summary(folder).done > seen)
    wait_for(lambda: read_summary(folder).state == "done")
