"""Runs worker processes, one model after the other, and shows how far they are by watching the stores.

What a worker does to itself (a Metal abort, an out-of-memory kill) ends that worker; the others still run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import FrameType

from app.display import Display
from app.store.run import RunStore
from app.store.workspace import summary
from benchmarks.errors import StoreError
from mlx_backends.terms import Terms

POLL_SECONDS = 0.25
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Job:
    """The runs of one model, for one worker."""

    runs: tuple[Path, ...]
    judges: tuple[str, ...]
    data: Path | None = None
    """The build whose media the answering needs; None: nothing is answered, only judged."""
    conditions: tuple[str, ...] = ()
    terms: Terms = field(default_factory=Terms)
    force: bool = False
    accept_engine: bool = False
    retry_failed: bool = False
    """Whether the judges judge again what they have failed on."""

    def command(self) -> list[str]:
        """What starts the worker; the order is its one argument."""
        return [sys.executable, "-m", "app.engine.worker", json.dumps(asdict(self), default=str)]

    @classmethod
    def from_json(cls, text: str) -> Job:
        """The inverse of what :meth:`command` passes."""
        given = json.loads(text)
        terms = given.pop("terms")
        replies = Path(terms.pop("replies")) if terms["replies"] else terms.pop("replies")
        return cls(
            runs=tuple(map(Path, given.pop("runs"))),
            judges=tuple(given.pop("judges")),
            data=Path(given.pop("data")) if given["data"] else given.pop("data"),
            conditions=tuple(given.pop("conditions")),
            terms=Terms(replies=replies, **terms),
            **given,
        )


class Supervisor:
    """Works off jobs. SIGINT and SIGTERM are passed on once, so that answers are committed; the second time they kill."""

    def __init__(self, display: Display) -> None:
        self.display = display
        self.interrupted = False
        self._worker: subprocess.Popen[bytes] | None = None

    def run(self, jobs: Sequence[Job]) -> int:
        """Work off ``jobs``; the worst of their exit codes, or 130 when interrupted."""
        before = {number: signal.signal(number, self._interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        worst = 0
        try:
            with self.display:
                for job in jobs:
                    if not self.interrupted:
                        worst = max(worst, self._run(job))
        finally:
            self._end_worker()
            for number, handler in before.items():
                signal.signal(number, handler)
        return INTERRUPTED if self.interrupted else worst

    def _run(self, job: Job) -> int:
        log = job.runs[0] / "worker.log"
        try:
            stderr = log.open("ab")
        except OSError as error:
            raise StoreError(f"cannot write {log}: {error.strerror}; make the run's folder writable.") from error
        with stderr:
            # Its own session, so that Ctrl-C reaches this process alone; a pipe on its input, so that it ends with us.
            self._worker = worker = subprocess.Popen(
                job.command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        if self.interrupted:  # before there was a worker to pass it on to
            worker.send_signal(signal.SIGTERM)
        while worker.poll() is None:
            self._show(job)
            self._wait(worker)
        self._worker = None
        for folder in job.runs:
            with suppress(StoreError):
                # Our own reading may have kept the worker from leaving one file behind (see RunStore.close).
                RunStore.open(folder).close()
        self._show(job)
        assert worker.stdout is not None
        report = worker.stdout.read()
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                stream.close()
        return self._outcome(worker.returncode, report, log)

    def _show(self, job: Job) -> None:
        """Show the runs of a job, and of those only the conditions that it asks."""
        runs = [summary(folder) for folder in job.runs]
        if job.conditions:
            asked = [tuple(p for p in run.progress if p.condition in job.conditions) for run in runs]
            runs = [replace(run, progress=progress) for run, progress in zip(runs, asked, strict=True)]
        self.display.update(runs)

    def _end_worker(self) -> None:
        # Only where showing failed, as it does when the reader of our output goes away, is a worker left here.
        if self._worker is not None and self._worker.poll() is None:
            self._worker.send_signal(signal.SIGTERM)
            self._worker.wait()

    def _wait(self, worker: subprocess.Popen[bytes]) -> None:
        try:
            worker.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            return

    def _outcome(self, code: int, report: bytes, log: Path) -> int:
        if report:
            told = json.loads(report)
            if told["message"]:
                self.display.problem(told["message"])
            return int(told["code"])
        if self.interrupted:
            return INTERRUPTED
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        hint = (
            " (an abort while a model answers is most often the GPU out of memory)" if code == -signal.SIGABRT else ""
        )
        self.display.problem(
            f"the worker of {log.parent.name} {how}{hint}; every answer reported done is safe, and {log} says more."
        )
        return 1

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        again, self.interrupted = self.interrupted, True
        if self._worker is not None and self._worker.poll() is None:
            self._worker.send_signal(signal.SIGKILL if again else signal.SIGTERM)
