"""The interface as a process on a real terminal, with keys that are all in its buffer before it reads the first."""

from __future__ import annotations

import os
import pty
import random
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

from app.engine.trash import FOLDER
from tests.support.command import ROOT
from tests.tui.stage import PATIENCE, Stage

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


class Terminal:
    """A process with a terminal of 100 columns and 30 lines; ``screen`` is everything it wrote."""

    def __init__(self, workspace: Path) -> None:
        self.master, slave = pty.openpty()
        ioctl(self.master, TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app.main", "--workspace", str(workspace)],
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
        while select.select([self.master], [], [], seconds)[0]:
            with suppress(OSError):
                part = os.read(self.master, 1 << 16)
                came += part
                if part:
                    continue
            break
        text = came.decode("utf-8", "replace")
        self.screen += text
        return text

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
    """The runs, and who has labelled anything in them."""
    from app.store.run import RunStore
    from app.store.workspace import Workspace

    found = []
    for name in Workspace(workspace).run_names():
        with RunStore.read(workspace / "runs" / name) as store:
            judges = {judge for record in store.records() for judge in record.verdicts}
        found.append(f"{name} {sorted(judges)}")
    return found


def try_bursts(workspace: Path, count: int) -> None:
    before = labels(workspace)
    source = random.Random("bursts on a terminal")
    terminal = Terminal(workspace)
    try:
        terminal.until("finished")
        for _ in range(count):
            keys = source.choice(HURRIED) if source.random() < 0.5 else ""
            keys = "".join(source.choice(LETTERS) for _ in range(source.randint(0, 6))) + keys
            terminal.send(keys)
            terminal.read(0.3)
            for _ in range(4):  # Esc closes what has been asked, and leaves what was opened
                terminal.send("\x1b")
                terminal.read(0.3)
            assert terminal.process.poll() is None, f"it ended after {keys!r}: {terminal.screen[-2000:]}"
            assert labels(workspace) == before, f"after {keys!r}"
            assert not (workspace / "jobs").exists(), f"something was started after {keys!r}"
            terminal.forget()
    finally:
        terminal.close()
    assert not (workspace / "runs" / FOLDER).exists()


def test_bursts_on_a_terminal_do_nothing(workspace: Path) -> None:
    try_bursts(workspace, 10)


@pytest.mark.slow
def test_many_bursts_on_a_terminal_do_nothing(workspace: Path) -> None:
    try_bursts(workspace, 300)


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
        terminal.until("brings it back")
        assert len(labels(workspace)) == 1
    finally:
        terminal.close()
    assert list((workspace / "runs" / FOLDER).glob("*/0000-*")), "a kill leaves it where it was put"
    again = Terminal(workspace)
    try:
        again.until("Trash")
        again.send("u")
        again.until("is back")
        assert labels(workspace) == before
        again.send("\x11")
        again.process.wait(PATIENCE)
    finally:
        again.close()
    assert not (workspace / "runs" / FOLDER).exists()
