"""Time that a worker has to end after it was told to, by the memory that it holds.

A process that is killed while it holds gigabytes of wired memory can leave them occupied until the Mac restarts
(``docs/mac-report.md``). So a worker is killed late, or when the user insists.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from contextlib import suppress

from benchmarks.errors import RashomonError
from judges.judge_registry import judge_names
from mlx_backends.engine_registry import required_memory

LEAST_SECONDS = 60.0
"""The seconds that every worker has: a small judge on a busy machine took more than 20."""

BYTES_PER_MINUTE = 8_000_000_000

NOTICE_SECONDS = 2.0
"""The seconds after which the user is told what is being waited for; most workers end sooner."""


def stop_seconds(held: int) -> float:
    """Return the seconds after which a worker that holds ``held`` bytes may be killed: a minute for each 8 GB, at least one."""
    return max(LEAST_SECONDS, 60 * held / BYTES_PER_MINUTE)


def held_memory(models: Iterable[str], measured: int = 0) -> int:
    """Return the most bytes that a worker of these models and judges may hold: estimated from files, or ``measured`` if more.

    A worker holds one local model at a time. The size of its process does not show it: on a Mac it leaves out Metal's memory.
    """
    held = measured
    for model in models:
        if model and model not in judge_names():
            with suppress(RashomonError):  # the model is gone, or was never there
                held = max(held, required_memory(model))
    return held


def waiting_message(work: str, held: int) -> str:
    """Return a sentence on the worker of ``work`` that is being waited for, and on what a second Ctrl-C does."""
    memory = f", which may hold {held / 1e9:.1f} GB of memory," if held else ""
    risk = ", after which a Mac may not free that memory until it restarts" if held else ""
    return f"waiting up to {stop_seconds(held):.0f} s for the worker of {work}{memory} to end; Ctrl-C again kills it{risk}."


def end_worker(worker: subprocess.Popen[bytes], seconds: float) -> None:
    """Tell ``worker`` to end, and kill it after ``seconds``, or at once if the wait is interrupted."""
    if worker.poll() is not None:
        return
    worker.terminate()
    try:
        with suppress(subprocess.TimeoutExpired):
            worker.wait(seconds)
    finally:
        worker.kill()
        worker.wait()
