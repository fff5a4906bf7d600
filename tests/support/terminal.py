"""A process on a pseudo-terminal, as a user's terminal program runs it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSCTTY, TIOCSWINSZ

PATIENCE = 60.0
"""The most seconds until something is written that a test waits for."""
_WHERE = re.compile(r"\x1b\[(\d+);(\d+)H\x1b\[6n")
"""The cursor is put somewhere, and asked for."""


class Terminal:
    """A process with a terminal of 100 columns and 30 lines; ``screen`` is everything it wrote.

    It tells where its cursor is, as terminals do; unless ``answers`` is False. ``asked`` is how often that was asked for. A
    terminal that ``controls`` the process sends it SIGHUP when it is closed, as in the first program of a window.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        *,
        answers: bool = True,
        controls: bool = False,
    ) -> None:
        self.answers, self.asked = answers, 0
        self.master, slave = pty.openpty()
        ioctl(self.master, TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=(lambda: ioctl(0, TIOCSCTTY, 0)) if controls else None,
            cwd=folder,
            env={**environment, "TERM": "xterm-256color"},
        )
        os.close(slave)
        self.screen = ""
        self.closed = False

    def read(self, seconds: float) -> str:
        """Read until nothing has come for so long; what came."""
        came = b""
        end = time.monotonic() + PATIENCE
        while not self.closed and time.monotonic() < end and select.select([self.master], [], [], seconds)[0]:
            with suppress(OSError):
                part = os.read(self.master, 1 << 16)
                came += part
                if part:
                    continue
            break
        text = came.decode("utf-8", "replace")
        self.screen += text
        for line, column in _WHERE.findall(text):
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
        """Type keys; nothing once the process has closed its end."""
        with suppress(OSError):
            os.write(self.master, keys.encode())

    def until(self, text: str) -> None:
        """Wait until a text was written, since the last time :meth:`forget` was called."""
        end = time.monotonic() + PATIENCE
        while text not in self.screen:
            self.read(0.05)
            assert self.process.poll() is None, self.screen[-2000:]
            assert time.monotonic() < end, f"{text!r} never came: {self.screen[-2000:]!r}"

    def forget(self) -> None:
        """Start anew with an empty ``screen``."""
        self.screen = ""

    def hang_up(self) -> None:
        """Close the terminal, as with its window."""
        if not self.closed:
            self.closed = True
            os.close(self.master)

    def kill(self) -> None:
        """Kill the process and its group, and wait for its end."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """Kill the process and close the terminal."""
        self.kill()
        self.hang_up()
