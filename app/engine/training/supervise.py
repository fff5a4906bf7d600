"""Supervisor of a training: it starts the worker process and shows what the worker logs."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from app.engine.training.folder import Training
from app.engine.training.log import Curve, LogReader
from app.engine.workers.keep_awake import keep_awake
from app.engine.workers.standby import worker_environment
from app.system.logs import Log
from app.system.signals import stop_process
from benchmarks.errors import StoreError

POLL_SECONDS = 0.25
STOP_SECONDS = 60.0
"""The seconds a worker has to save a checkpoint after it was told to stop."""
INTERRUPTED = 130

_LOG = "worker.log"

Show = Callable[[str, str, Curve], None]
"""A function that displays a training's state, the note on it and its curve."""


class TrainingSupervisor:
    """Runner of one training. SIGINT and SIGTERM are passed on once, so that a checkpoint is saved; a second signal kills."""

    def __init__(self, training: Training, show: Show, problem: Callable[[str], None]) -> None:
        self._training, self._show, self._problem = training, show, problem
        self._worker: subprocess.Popen[bytes] | None = None
        self._interrupted = False
        self._stop_by = math.inf

    def run(self) -> int:
        """Train to the end; return the exit code."""
        before = {number: signal.signal(number, self._interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            with keep_awake():
                return self._run()
        finally:
            if self._worker is not None and self._worker.poll() is None:  # the reader of our output went away
                self._worker.terminate()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _run(self) -> int:
        log, reader = Log(self._training.path, _LOG), LogReader(self._training.path)
        with log.pump("worker") as pump:
            # In its own session, so that Ctrl-C reaches only this process; with a pipe as input, so that it ends with us.
            self._worker = worker = subprocess.Popen(
                [sys.executable, "-P", "-m", "app.engine.training.worker", str(self._training.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=pump.fileno(),
                start_new_session=True,
                env=worker_environment(),
            )
        if self._interrupted:  # before there was a worker
            worker.terminate()
        while worker.poll() is None:
            reader.poll()
            self._show(*self._training.state(), reader.curve)
            with suppress(subprocess.TimeoutExpired):
                worker.wait(POLL_SECONDS)
            if time.monotonic() > self._stop_by:
                self._stop_by = math.inf
                worker.kill()
        pump.finish()
        log.close()
        reader.poll()
        assert worker.stdout is not None
        assert worker.stdin is not None
        outcome = worker.stdout.read()
        worker.stdout.close()
        worker.stdin.close()
        self._show(*self._training.state(), reader.curve)
        return self._code(worker.returncode, outcome)

    def _code(self, code: int, outcome: bytes) -> int:
        report = json.loads(outcome) if outcome else {}
        if report.get("message"):
            self._problem(report["message"])
        if self._interrupted or code in (-signal.SIGINT, -signal.SIGTERM):
            return INTERRUPTED
        if not report:
            ending = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
            self._problem(
                f"the worker of {self._training.name} {ending}; the same command resumes from its last checkpoint. See "
                f"{self._training.path / _LOG} for details."
            )
            return 1
        return int(report["code"])

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        is_second, self._interrupted = self._interrupted, True
        if not is_second:
            self._stop_by = time.monotonic() + STOP_SECONDS
        if self._worker is not None and self._worker.poll() is None:
            self._worker.send_signal(signal.SIGKILL if is_second else signal.SIGTERM)


def stop_training(training: Training) -> None:
    """Stop a training's worker at a checkpoint, as Ctrl-C would. Raises StoreError if it has none."""
    pid = training.worker()
    if pid is None:
        raise StoreError(f"{training.name} is not running; there is nothing to stop.")
    stop_process(pid, training.name)
