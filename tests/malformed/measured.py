"""A command as a process, with the memory and the processor time of all processes that it starts.

Run as a script, it starts the command behind ``--``, waits for all of its descendants, and prints what they took as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the script is small, so that its own memory counts for nothing
    from tests.support.command import Rashomon

_CHILD_SUBREAPER = 36
_MACOS_UNIT = 1 if sys.platform == "darwin" else 1024
"""The bytes in the unit of ``ru_maxrss``."""


@dataclass(frozen=True)
class Measured:
    """What a command printed and took: the memory of its largest process in MB, the processor time of all in seconds."""

    code: int
    out: str
    err: str
    megabytes: float
    seconds: float


def measured(rashomon: Rashomon, *arguments: str, timeout: float = 120) -> Measured:
    """Run a command to its end and measure it. Raises TimeoutExpired."""
    report = rashomon.home / "measured.json"
    done = subprocess.run(
        [sys.executable, "-S", __file__, str(report), *rashomon.command(*arguments)],
        env=rashomon.environment,
        cwd=rashomon.home,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        check=False,
    )
    values = json.loads(report.read_text())
    report.unlink()
    out, err = (stream.decode("utf-8", "surrogateescape") for stream in (done.stdout, done.stderr))
    return Measured(done.returncode, out, err, values["megabytes"], values["seconds"])


def _run(report: str, command: list[str]) -> int:
    """Run a command and write what it and its descendants took; those that it leaves behind become children of this process."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
    first = os.posix_spawn(command[0], command, os.environ)
    code, largest, seconds = 1, 0, 0.0
    while True:
        try:
            pid, status, usage = os.wait3(0)
        except ChildProcessError:
            break
        largest = max(largest, usage.ru_maxrss)
        seconds += usage.ru_utime + usage.ru_stime
        if pid == first:
            code = os.waitstatus_to_exitcode(status)
    Path(report).write_text(json.dumps({"megabytes": largest * _MACOS_UNIT / 1e6, "seconds": seconds}))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1], sys.argv[2:]))
