"""The interface as a process on a real terminal, with keys that are all in its buffer before it reads the first."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from app.store.run_trash import FOLDER
from tests.support.command import ROOT
from tests.support.terminal import PATIENCE, Terminal
from tests.support.tui_stage import Stage

pytestmark = pytest.mark.slow

LETTERS = "ydnxyRrpuosewblLjkgGaAdfgmtThiNvz/?123456 \r\t\x0e\x12\x13\x15\x02dy"
HURRIED = (
    "dy",
    "/dy",
    "Ry",
    "6\rasd",
    "3o1\rb\r\r",
    "\x0e\x12y",
    "4ewy",
    "1dy",
    "dyu",
    "dyyyy",
    "d\r",
    "d\x1b[C\r",
    "u",
    "xy",
)


LATE_KEYS = """
import time
from textual import _xterm_parser as parser, events
feed = parser.XTermParser.feed
def late(self, data):
    for event in feed(self, data):
        yield event
        time.sleep(SECONDS)
parser.XTermParser.feed = late
from app.main import main
main()
"""
"""The interface on a machine so busy that every key is read late."""


def opened(workspace: Path, *, answers: bool = True, seconds_late: float | None = None) -> Terminal:
    late = ["-c", LATE_KEYS.replace("SECONDS", str(seconds_late))]
    command = [sys.executable, *(["-m", "app.main"] if seconds_late is None else late), "--workspace", str(workspace)]
    return Terminal(command, {**os.environ, "PYTHONPATH": str(ROOT)}, ROOT, answers=answers)


def clear(terminal: Terminal) -> None:
    """Close every dialog and screen: only where none is open does ? open the help."""
    terminal.answers = True
    end = time.monotonic() + PATIENCE
    is_open = False
    while not is_open:
        assert time.monotonic() < end, f"no help: {terminal.screen[-2000:]!r}"
        assert terminal.process.poll() is None, terminal.screen[-2000:]
        for _ in range(4):
            terminal.send("\x1b")
            terminal.read(0.2)
        terminal.forget()
        terminal.send("?")
        terminal.read(0.4)
        is_open = "Help" in terminal.screen and ": " in terminal.screen
    terminal.send("\x1b")
    terminal.read(0.2)


@pytest.fixture
def workspace(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "HF_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("LOGNAME", "ann")
    stage.run("finished")
    stage.die(stage.run("broken-off", state="running", done=3))
    return stage.path


def labels(workspace: Path) -> list[str]:
    """Return the runs, with the judges that have labelled anything in them."""
    from app.store.run_store import RunStore
    from app.store.workspace import Workspace

    judged_instances = []
    for name in Workspace(workspace).run_names():
        with RunStore.read(workspace / "runs" / name) as store:
            judges = {judge for record in store.records() for judge in record.verdicts}
        judged_instances.append(f"{name} {sorted(judges)}")
    return judged_instances


def try_bursts(workspace: Path, count: int, part: int = 0) -> None:
    before = labels(workspace)
    source = random.Random(f"bursts on a terminal {part}")
    terminal = opened(workspace)
    try:
        terminal.until("finished")
        for _ in range(count):
            keys = source.choice(HURRIED) if source.random() < 0.5 else ""
            keys = "".join(source.choice(LETTERS) for _ in range(source.randint(0, 6))) + keys
            terminal.answers = False  # it has not yet displayed what the keys lead to
            terminal.send(keys)
            terminal.read(0.3)
            clear(terminal)
            assert terminal.process.poll() is None, f"it ended after {keys!r}: {terminal.screen[-2000:]}"
            assert labels(workspace) == before, f"after {keys!r}"
            assert not (workspace / "jobs").exists(), f"something was started after {keys!r}"
            terminal.forget()
    finally:
        terminal.close()
    assert not (workspace / "runs" / FOLDER).exists()


def test_bursts_on_a_terminal_do_nothing(workspace: Path) -> None:
    try_bursts(workspace, 10)


@pytest.mark.parametrize("part", range(1, 11))
def test_many_bursts_on_a_terminal_do_nothing(workspace: Path, part: int) -> None:
    """A burst takes two seconds at least, of which most is waiting: with the keys that follow, for what they may do."""
    try_bursts(workspace, 30, part)


def test_a_key_that_is_read_late_confirms_nothing(workspace: Path) -> None:
    before = labels(workspace)
    terminal = opened(workspace, seconds_late=1.0)
    try:
        terminal.until("finished")
        terminal.send("dyyy")
        terminal.until("Delete?")
        terminal.pass_time(4.0)
        assert labels(workspace) == before
        terminal.send("y")
        terminal.until("deleted:")
        assert len(labels(workspace)) == 1
    finally:
        terminal.close()


def test_a_key_confirms_nothing_that_the_terminal_has_not_got_yet(workspace: Path) -> None:
    before = labels(workspace)
    terminal = opened(workspace)
    try:
        terminal.until("finished")
        terminal.read(0.5)
        terminal.send("d")
        time.sleep(2.0)  # a slow line: what the interface writes is still under way
        terminal.send("y")
        terminal.until("Delete?")
        terminal.read(0.5)
        assert labels(workspace) == before
    finally:
        terminal.close()


def test_a_terminal_without_replies_can_answer_dialogs_after_a_while(workspace: Path) -> None:
    before = labels(workspace)
    terminal = opened(workspace, answers=False)
    try:
        terminal.until("finished")
        terminal.send("dyyy")
        terminal.until("Delete?")
        assert terminal.asked
        terminal.pass_time(2.0)
        assert labels(workspace) == before
        terminal.send("y")
        terminal.until("deleted:")
    finally:
        terminal.close()


def test_a_lost_reply_of_the_terminal_is_requested_again(workspace: Path) -> None:
    terminal = opened(workspace)
    try:
        terminal.until("finished")
        terminal.send("d")
        terminal.until("Delete?")
        terminal.send("n")
        terminal.read(0.5)
        terminal.answers = False
        terminal.forget()
        terminal.send("d")
        terminal.until("Delete?")
        terminal.pass_time(1.5)
        terminal.answers = True
        terminal.send("y")  # refused, and the terminal is asked again
        terminal.read(0.5)
        assert len(labels(workspace)) == 2
        terminal.send("y")
        terminal.until("deleted:")
    finally:
        terminal.close()


def test_a_run_deleted_before_a_kill_is_brought_back_after_it(workspace: Path) -> None:
    before = labels(workspace)
    terminal = opened(workspace)
    try:
        terminal.until("finished")
        terminal.forget()
        terminal.send("dy")
        terminal.until("Delete?")
        terminal.read(0.3)
        assert labels(workspace) == before
        terminal.send("y")
        terminal.until("deleted:")
        assert len(labels(workspace)) == 1
    finally:
        terminal.close()
    assert list((workspace / "runs" / FOLDER).glob("*/0000-*")), "a kill leaves it where it was put"
    again = opened(workspace)
    try:
        again.until("Trash")
        again.send("u")
        again.until("is restored")
        assert labels(workspace) == before
        again.send("\x11")
        again.process.wait(PATIENCE)
    finally:
        again.close()
    assert not (workspace / "runs" / FOLDER).exists()


def test_a_terminal_that_gives_no_size_of_its_cells_is_no_error(workspace: Path) -> None:
    """Libraries warn of that before the interface is displayed, and their text would stand there when it has ended."""
    terminal = opened(workspace)
    try:
        terminal.until("finished")
        assert "\x1b[16t" in terminal.screen, "the size was asked for"
        terminal.send("\x11")
        while terminal.process.poll() is None:
            terminal.read(0.05)
        terminal.read(0.2)
        assert "Traceback" not in terminal.screen
        assert "Failed to" not in terminal.screen
    finally:
        terminal.close()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_ends_the_interface_and_restores_the_terminal(name: str, workspace: Path) -> None:
    """Several times, with keys: the signal comes while the interface waits, or handles or draws something."""
    for number in range(4):
        terminal = opened(workspace)
        try:
            terminal.until("finished")
            terminal.send("4tjj"[:number])
            terminal.pass_time(0.3 * number)
            terminal.process.send_signal(getattr(signal, name))
            end = time.monotonic() + PATIENCE
            while terminal.process.poll() is None:
                assert time.monotonic() < end, "it has not ended"
                terminal.read(0.05)
            terminal.read(0.2)
            assert terminal.process.returncode == 130, terminal.screen[-3000:]
            assert "rashomon: interrupted" in terminal.screen.rpartition("\x1b[?1049l")[2]
        finally:
            terminal.close()


def test_the_interface_ends_with_its_terminal(workspace: Path) -> None:
    """A terminal whose window is closed by force sends no signal to a process of another session."""
    terminal = opened(workspace)
    try:
        terminal.until("finished")
        terminal.hang_up()
        terminal.process.wait(PATIENCE)
    finally:
        terminal.kill()
