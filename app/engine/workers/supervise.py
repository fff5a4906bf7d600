"""Runs worker processes, one model after the other, and shows how far they are by watching the stores.

What a worker does to itself ends that worker; the others still run. One that died for want of memory is started again, with
fewer requests under way (see :mod:`app.engine.workers.recovery`).
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import FrameType

from app.commands.progress_display import Display
from app.engine.workers.keep_awake import awake
from app.engine.workers.recovery import WorkerDeath, recover, want_of_memory
from app.store.run import RunStore
from app.store.workspace import summary
from app.system.logs import Log
from app.system.paths import free_space
from benchmarks.errors import StoreError
from mlx_backends.remote.options import RemoteOptions

POLL_SECONDS = 0.25
STOP_SECONDS = 20.0
"""How long a worker may take to stop once it was asked to. One that hangs in a library never does."""
_ROOM = 1 << 20
"""Bytes free on a disk on which a worker, which died without a word, may have found no room."""
INTERRUPTED = 130
_LOG = "worker.log"


@dataclass(frozen=True, slots=True)
class Job:
    """The runs of one model, for one worker."""

    runs: tuple[Path, ...]
    judges: tuple[str, ...]
    data: Path | None = None
    """The build whose media the answering needs; None: nothing is answered, only judged."""
    conditions: tuple[str, ...] = ()
    terms: RemoteOptions = field(default_factory=RemoteOptions)
    force: bool = False
    accept_engine: bool = False
    retry_failed: bool = False
    """Whether the judges judge again what they have failed on."""
    width: int | None = None
    """How many requests may be under way; None: as many as the backend takes."""
    restarts: int = 0
    """How often, without an answer in between, a worker that died for want of memory is started again."""
    until_width: float | None = None
    """The width of every condition's interval at which the answering stops; None: it does not."""

    def command(self) -> list[str]:
        """What starts the worker; the order is its one argument."""
        return [sys.executable, "-P", "-m", "app.engine.workers.worker", json.dumps(asdict(self), default=str)]

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
            terms=RemoteOptions(replies=replies, **terms),
            **given,
        )


@dataclass(frozen=True, slots=True)
class _End:
    """How a worker ended: the exit code it stands for, and its death where that was for want of memory."""

    code: int
    death: WorkerDeath | None = None


class Supervisor:
    """Works off jobs. SIGINT and SIGTERM are passed on once, so that answers are committed; the second time they kill.

    A worker that has not stopped :data:`STOP_SECONDS` after the first time is killed too: only what is under way is lost.
    """

    def __init__(self, display: Display) -> None:
        self.display = display
        self.interrupted = False
        self._worker: subprocess.Popen[bytes] | None = None
        self._stop_by = math.inf

    def run(self, jobs: Sequence[Job]) -> int:
        """Work off ``jobs``; the worst of their exit codes, or 130 when interrupted."""
        before = {number: signal.signal(number, self._interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        worst = 0
        try:
            with awake(), self.display:
                for job in jobs:
                    if not self.interrupted:
                        worst = max(worst, self._work_off(job))
        finally:
            self._end_worker()
            for number, handler in before.items():
                signal.signal(number, handler)
        return INTERRUPTED if self.interrupted else worst

    def _work_off(self, job: Job) -> int:
        """Run workers until one ends otherwise than for want of memory, or that came too often; the exit code."""
        restarts = 0
        while True:
            before = _made(job)
            end = self._run(job)
            if end.death is None or self.interrupted:
                return INTERRUPTED if self.interrupted else end.code
            restarts = 1 if _made(job) > before else restarts + 1
            told = end.death.sentence()
            log = job.runs[0] / _LOG
            if restarts > job.restarts:
                _write(job, f"{told}; it is not started again.")
                often = f" (after {job.restarts} restarts without an answer)" if job.restarts else ""
                self.display.problem(
                    f"{job.runs[0].name}: {told}{often}; every answer reported done is safe, and {log} says more."
                )
                return end.code
            _write(job, f"{told}; it is started again ({restarts} of {job.restarts}).")
            self.display.problem(f"{job.runs[0].name}: {told}; it is started again ({restarts} of {job.restarts}).")
            job = replace(job, width=end.death.narrower or job.width)

    def _run(self, job: Job) -> _End:
        log = Log(job.runs[0], _LOG)
        with log.pump("worker") as pump:
            # Its own session, so that Ctrl-C reaches this process alone; a pipe on its input, so that it ends with us.
            self._worker = worker = subprocess.Popen(
                job.command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=pump.fileno(),
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        if self.interrupted:  # before there was a worker to pass it on to
            worker.send_signal(signal.SIGTERM)
        while worker.poll() is None:
            self._show(job)
            self._wait(worker)
            if time.monotonic() > self._stop_by:
                self._stop_by = math.inf
                self._kill(job, worker, log)
        self._worker = None
        pump.finish()
        log.close()
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
        return self._outcome(job, worker, report, log.path)

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
            with suppress(subprocess.TimeoutExpired):
                self._worker.wait(STOP_SECONDS)
            self._worker.kill()
            self._worker.wait()

    def _kill(self, job: Job, worker: subprocess.Popen[bytes], log: Log) -> None:
        told = f"the worker did not stop within {STOP_SECONDS:.0f} s and was killed"
        log.write("rashomon", f"{told}.")
        self.display.problem(f"{job.runs[0].name}: {told}; every answer reported done is safe.")
        worker.kill()

    def _wait(self, worker: subprocess.Popen[bytes]) -> None:
        try:
            worker.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            return

    def _outcome(self, job: Job, worker: subprocess.Popen[bytes], report: bytes, log: Path) -> _End:
        told = json.loads(report) if report else {}
        if told.get("message"):
            self.display.problem(told["message"])
        if told and not told["short"]:
            return _End(int(told["code"]))
        code = worker.returncode
        if self.interrupted or code in (-signal.SIGINT, -signal.SIGTERM):  # as a worker ends that loads its model
            return _End(INTERRUPTED)
        if cause := want_of_memory(code, told.get("short")):
            return _End(1, recover(job.runs, worker.pid, cause))
        if free_space(log.parent) < _ROOM:
            self.display.problem(
                f"the disk of {log.parent.parent} is full; every answer reported done is safe: free some space, then go on."
            )
            return _End(1)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        self.display.problem(
            f"the worker of {log.parent.name} {how}; every answer reported done is safe, and {log} says more."
        )
        return _End(1)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        again, self.interrupted = self.interrupted, True
        if not again:
            self._stop_by = time.monotonic() + STOP_SECONDS
        if self._worker is not None and self._worker.poll() is None:
            self._worker.send_signal(signal.SIGKILL if again else signal.SIGTERM)


def _write(job: Job, text: str) -> None:
    with suppress(StoreError):
        log = Log(job.runs[0], _LOG)
        log.write("rashomon", text)
        log.close()


def _made(job: Job) -> int:
    """How many answers and verdicts the runs of a job hold; an error is neither."""
    progress = [p for folder in job.runs for p in summary(folder).progress]
    judged = [count for p in progress for count in p.judged.values()]
    return sum(p.done - p.errors for p in progress) + sum(count.labelled + count.unparsed for count in judged)
