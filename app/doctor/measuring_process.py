"""Child processes that measure a model, because Metal can end a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

_STOP_SECONDS = 60
"""The time that an interrupted child has to end by itself: a killed one may leave memory wired on a Mac."""


def child_json(arguments: Sequence[str], seconds: float, **variables: str) -> dict[str, Any] | str:
    """Return the JSON object on the last line that Python prints with ``arguments``, or a sentence on why there is none.

    The process has ``variables`` in its environment, and ``seconds`` to end.
    """
    with subprocess.Popen(
        [sys.executable, "-P", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, **variables},
    ) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            _stop(process)
            return f"none: not done in {seconds:.0f} s"
        except BaseException:
            _stop(process)
            raise
    with suppress(IndexError, ValueError):
        printed = json.loads(output.splitlines()[-1])
        if isinstance(printed, dict):
            return printed
    last = (errors.strip().splitlines() or ["no message"])[-1]
    return f"none: the process ended with {process.returncode}: {last[:300]}"


def _stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=_STOP_SECONDS)
    except BaseException:
        process.kill()
