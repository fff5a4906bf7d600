"""Standby worker: a worker process that imports its libraries while its run is still being planned.

It gets its job through its standard input, whose end it waits for afterwards like any worker. If there is no job after all, it
ends with the process that started it. This module imports next to nothing, so that the worker starts before the command has
imported the rest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.system.numpy_threads import user_environment
from benchmarks.errors import SpecError
from benchmarks.untrusted.typed_paths import path_exists, typed_path

STANDBY = "--standby"
"""The worker's argument in place of a job; a model's name follows."""

_LARGEST_SPEC = 1 << 20


@dataclass(frozen=True, slots=True)
class StandbyWorker:
    """A worker without a job. ``errors`` is the reading end of a pipe that is its standard error."""

    model: str
    process: subprocess.Popen[bytes]
    errors: int

    def give(self, job: str) -> bool:
        """Hand over the job, one line of JSON; return whether the worker was there to take it."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{job}\n".encode())
            self.process.stdin.flush()
        except OSError:
            return False
        return True

    def discard(self) -> None:
        """End the worker."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):  # of what was not written
                    stream.close()
        os.close(self.errors)


_worker: StandbyWorker | None = None


def start(model: str | None) -> None:
    """Start a standby worker for ``model``; do nothing for a remote model, a policy or None, or if no process can be started."""
    global _worker
    if model is None or ":" in model or _worker is not None:
        return
    errors, errors_of_worker = os.pipe()
    try:
        process = subprocess.Popen(
            worker_command(STANDBY, model),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors_of_worker,
            start_new_session=True,
            env=worker_environment(),
        )
    except (OSError, ValueError):
        os.close(errors)
        return
    finally:
        os.close(errors_of_worker)
    _worker = StandbyWorker(model, process, errors)


def hand_over(model: str, job: str) -> StandbyWorker | None:
    """Give a job, one line of JSON, to the standby worker for ``model``, and return it; the caller owns it from now on.

    None if there is none. One for another local model is ended: it takes memory, and has imported libraries that may change the
    answers of this one. During a remote model or a policy it goes on waiting.
    """
    global _worker
    if _worker is None or (_worker.model != model and ":" in model):
        return None
    worker, _worker = _worker, None
    if worker.model == model and worker.give(job):
        return worker
    worker.discard()
    return None


def discard() -> None:
    """End the standby worker, if there is one."""
    global _worker
    worker, _worker = _worker, None
    if worker is not None:
        worker.discard()


def worker_command(*arguments: str) -> list[str]:
    """Return the command line of a worker process."""
    return [sys.executable, "-P", "-m", "app.engine.workers.run_worker", *arguments]


def worker_environment() -> dict[str, str]:
    """Return the environment of a worker process."""
    return {**user_environment(), "PYTHONUNBUFFERED": "1"}


def first_model(spec: Path | None, overrides: Sequence[str]) -> str | None:
    """Return the first model that a command names, on its line or in its ``spec`` file; None if neither is certain."""
    base = Path()
    models: Sequence[object] = overrides
    if not overrides and spec is not None:
        from benchmarks.untrusted.safe_toml import parse_toml

        try:
            with open(spec, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
                value = parse_toml(file.read(_LARGEST_SPEC)).get("model")
        except (OSError, ValueError):  # planning reports it
            return None
        base, models = spec.parent, value if isinstance(value, list) else [value]
    if not models or not isinstance(models[0], str):
        return None
    with suppress(SpecError):
        return str(typed_path(models[0], base)) if path_exists(models[0], base) else models[0]
    return None
