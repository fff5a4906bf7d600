"""Output of the operating system's own tools, which may be missing, fail, hang or speak another language."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable

SECONDS = 10.0
"""The longest wait for a tool. One that is short of memory answers late, which is when its answer matters."""


def tool_output(*command: str) -> str:
    """Return what a tool prints, in English; "" if it is missing, fails or takes longer than :data:`SECONDS`.

    The first word is a whole path, so that no other program of that name is run.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def tool_outputs(commands: Iterable[tuple[str, ...]]) -> list[str]:
    """Return what each tool prints, as :func:`tool_output`. They run at the same time, so that those that hang do so together."""
    from concurrent.futures import ThreadPoolExecutor  # for a Mac alone

    commands = list(commands)
    with ThreadPoolExecutor(max(1, len(commands))) as pool:
        return list(pool.map(lambda command: tool_output(*command), commands))
