"""The interface as a process on a real terminal, with keys that are all in its buffer before it reads the first."""

from __future__ import annotations

import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest

from app.store.trash import FOLDER
from tests.support.command import ROOT
from tests.support.tui_stage import PATIENCE, Stage

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
WHERE = re.compile(r"\x1b\[(\d+);(\d+)H\x1b\[6n")
"""The cursor is put somewhere, and asked for."""


class Terminal:
    """A process with a terminal of 100 columns and 30 lines; ``screen`` is everything it wrote.

    It tells where its cursor is, as terminals do; unless ``answers`` is False. ``asked`` is how often that was asked for.
    """

    def __init__(self, workspace: Path, *, answers: bool = True, seconds_late: float | None = None) -> None:
        self.answers, self.asked = answers, 0
        late = ["-c", LATE_KEYS.replace("SECONDS", str(seconds_late))]
        self.master, slave = pty.openpty()
        ioctl(self.master, TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [
                sys.executable,
                *(["-m", "app.main"] if seconds_late is None else late),
                "--workspace",
                str(workspace),
            ],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            cwd=ROOT,
            env={**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)},
        )
        os.close(slave)
        self.screen = ""

    def read(self, seconds: float) -> str:
        """Read until nothing has come for so long; what came."""
        came = b""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and select.select([self.master], [], [], seconds)[0]:
            with suppress(OSError):
                part = os.read(self.master, 1 << 16)
                came += part
                if part:
                    continue
            break
        text = came.decode("utf-8", "replace")
        self.screen += text
        for line, column in WHERE.findall(text):
            self.asked += 1
            if self.answers:
                self.send(f"\x1b[{line};{column}R")
        return text

    def pass_time(self, seconds: float) -> None:
        """Read for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)

    def send(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def until(self, text: str) -> None:
        """Wait until a text was written, since the last time :meth:`forget` was called."""
        end = time.monotonic() + PATIENCE
        while text not in self.screen:
            self.read(0.05)
            assert self.process.poll() is None, self.screen[-2000:]
            assert time.monotonic() < end, f"{text!r} never came: {self.screen[-2000:]!r}"

    def forget(self) -> None:
        self.screen = ""

    def clear(self) -> None:
        """Close every dialog and screen: only where none is open does ? open the help."""
        self.answers = True
        end = time.monotonic() + PATIENCE
        opened = False
        while not opened:
            assert time.monotonic() < end, f"no help: {self.screen[-2000:]!r}"
            assert self.process.poll() is None, self.screen[-2000:]
            for _ in range(4):
                self.send("\x1b")
                self.read(0.2)
            self.forget()
            self.send("?")
            self.read(0.4)
            opened = "Help" in self.screen and ": " in self.screen
        self.send("\x1b")
        self.read(0.2)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        self.kill()
        os.close(self.master)


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
    from app.store.run import RunStore
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
    terminal = Terminal(workspace)
    try:
        terminal.until("finished")
        for _ in range(count):
            keys = source.choice(HURRIED) if source.random() < 0.5 else ""
            keys = "".join(source.choice(LETTERS) for _ in range(source.randint(0, 6))) + keys
            terminal.answers = False  # it has not yet displayed what the keys lead to
            terminal.send(keys)
            terminal.read(0.3)
            terminal.clear()
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
    terminal = Terminal(workspace, seconds_late=1.0)
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
    terminal = Terminal(workspace)
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
    terminal = Terminal(workspace, answers=False)
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
    terminal = Terminal(workspace)
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
    terminal = Terminal(workspace)
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
    again = Terminal(workspace)
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


def test_the_interface_ends_with_its_terminal(workspace: Path) -> None:
    """A terminal whose window is closed by force sends no signal to a process of another session."""
    terminal = Terminal(workspace)
    try:
        terminal.until("finished")
        os.close(terminal.master)
        terminal.process.wait(PATIENCE)
    finally:
        terminal.kill()
