"""Supervisor of a training: it starts the worker process and shows what the worker logs."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from app.engine.training.training_folder import WORKER_LOG, Training
from app.engine.training.training_log import Curve, LogReader
from app.engine.workers.keep_awake import keep_awake
from app.engine.workers.standby_worker import worker_environment
from app.engine.workers.worker_process import Outcome, ending
from app.engine.workers.worker_recovery import restartable_cause
from app.engine.workers.worker_stop_time import NOTICE_SECONDS, held_memory, stop_seconds, waiting_message
from app.exit_codes import DONE, INTERRUPTED, STOPPED, EndedError
from app.spec_keys import RESTARTS
from app.system.process_signals import handle_stop_signals, stop_process
from app.system.worker_logs import Log
from benchmarks.errors import StoreError
from mlx_backends.mlx.training.training_checkpoint import CHECKPOINT

POLL_SECONDS = 0.25

_SMALLER = " To take less memory, start a training with smaller images (--max-pixels), a lower --rank or a smaller quantisation."

Show = Callable[[str, str, Curve], None]
"""A function that displays a training's state, the note on it and its curve."""


class TrainingSupervisor:
    """Runner of one training. SIGINT and SIGTERM are passed on once, so that a checkpoint is saved; after that, SIGINT kills.

    A worker that ran out of memory or lost the GPU is replaced by another one, which resumes from the last checkpoint.
    """

    def __init__(
        self, training: Training, show: Show, notice: Callable[[str], None], wait: float | None = None
    ) -> None:
        """Prepare a training that waits for the device for ``wait`` seconds at most; None: until it is free."""
        self._training, self._show, self._notice = training, show, notice
        self._wait = [] if wait is None else [str(wait)]
        self._worker: subprocess.Popen[bytes] | None = None
        self._has_begun = False
        self._reader = LogReader(training.path)
        self._interrupted = False
        self._interrupted_at = math.inf

    def run(self) -> None:
        """Train to the end. Raises EndedError for another end."""
        before = handle_stop_signals(self._interrupt)
        try:
            with keep_awake():
                self._run()
        finally:
            if self._worker is not None and self._worker.poll() is None:  # the reader of our output went away
                self._worker.terminate()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _run(self) -> None:
        """Run workers until one ends without a cause for a restart, or restarts are used up. Raises EndedError."""
        restarts = 0
        while True:
            saved = self._saved_at()
            code, outcome = self._run_worker()
            cause = restartable_cause(code, outcome)
            problem = f"the worker of {self._training.name} {(cause or ending(code, outcome)).rstrip(',')}"
            if outcome is not None and not outcome.death:
                if outcome.failure:
                    raise self._failed(problem)
                if outcome.code not in (DONE, INTERRUPTED):
                    raise EndedError(outcome.code, outcome.message)
                if outcome.code == DONE:
                    return
            if self._interrupted or code in (INTERRUPTED, -signal.SIGINT, -signal.SIGTERM):
                raise EndedError(INTERRUPTED, "interrupted.")
            if cause is None:
                raise self._failed(problem)
            restarts = restarts + 1 if self._saved_at() == saved else 1
            if restarts > RESTARTS:
                memory = outcome is None or outcome.memory
                raise self._failed(f"{problem}, after {RESTARTS} restarts without a new checkpoint", _SMALLER * memory)
            self._notice(f"{problem}; restart {restarts} of {RESTARTS} from the last checkpoint.")

    def _saved_at(self) -> int | None:
        """Return the time at which the last checkpoint was saved; None if there is none."""
        try:
            return (self._training.path / CHECKPOINT).stat().st_mtime_ns
        except OSError:
            return None

    def _run_worker(self) -> tuple[int, Outcome | None]:
        """Run a worker to its end and show what it does; return its exit code and what it reported."""
        log = Log(self._training.path, WORKER_LOG)
        with log.pump("worker") as pump:
            # In its own session, so that Ctrl-C reaches only this process; with a pipe as input, so that it ends with us.
            self._worker = worker = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "app.engine.training.training_worker",
                    str(self._training.path),
                    *self._wait,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=pump.fileno(),
                start_new_session=True,
                env=worker_environment(),
            )
        self._has_begun = False
        if self._interrupted:  # before there was a worker
            worker.terminate()
        held: int | None = None
        while worker.poll() is None:
            self._show_progress()
            with suppress(subprocess.TimeoutExpired):
                worker.wait(POLL_SECONDS)
            waited = time.monotonic() - self._interrupted_at
            if held is None and waited > NOTICE_SECONDS and worker.poll() is None:
                held = held_memory([self._training.spec.model], self._reader.curve.peak_memory)
                self._notice(waiting_message(self._training.name, held))
            if held is not None and waited > stop_seconds(held):
                worker.kill()
        pump.finish()
        log.close()
        assert worker.stdout is not None
        assert worker.stdin is not None
        report = worker.stdout.read()
        worker.stdout.close()
        worker.stdin.close()
        self._show_progress()
        return worker.returncode, Outcome.read(report)

    def _show_progress(self) -> None:
        """Show what the worker does; until it has begun, the recorded state is that of an earlier one."""
        self._reader.poll()
        worker = self._worker
        self._has_begun = self._has_begun or worker is None or self._training.worker() == worker.pid
        starting = worker is not None and not self._has_begun and worker.poll() is None
        self._show(*(("planned", "") if starting else self._training.state()), self._reader.curve)

    def _failed(self, problem: str, advice: str = "") -> EndedError:
        """Record why the training failed, and return that as an error."""
        reason = f"{problem}; the same command resumes from the last checkpoint.{advice}"
        with suppress(StoreError), self._training.lock() as lock:  # a full disk, or another process that has taken over
            if lock.acquire("rashomon"):
                self._training.note("failed", reason)
        return EndedError(STOPPED, f"{reason} See {self._training.path / WORKER_LOG} for details.")

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        is_second, self._interrupted = self._interrupted, True
        if not is_second:
            self._interrupted_at = time.monotonic()
        elif number != signal.SIGINT:  # another program's signal, or a second request to stop, is no insistence
            return
        if self._worker is not None and self._worker.poll() is None:
            self._worker.send_signal(signal.SIGKILL if is_second else signal.SIGTERM)


def stop_training(training: Training) -> None:
    """Stop a training's worker at a checkpoint, as Ctrl-C would. Raises StoreError if it has none."""
    pid = training.worker()
    if pid is None:
        raise StoreError(f"{training.name} is not running; there is nothing to stop.")
    stop_process(pid, training.name)
