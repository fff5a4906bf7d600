"""Supervisor: runs worker processes, and displays their progress by watching the stores.

There is one for each model, one after the other; on a cluster also at the same time, where models fit on different nodes.

A worker that crashes does not affect the others. One that ran out of memory is restarted with fewer requests in flight, one that
lost the GPU with as many (see :mod:`app.engine.workers.worker_recovery`).
"""

from __future__ import annotations

import math
import selectors
import signal
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from app.engine.batch_progress import Display
from app.engine.batch_runs import report_batch
from app.engine.workers import standby_worker
from app.engine.workers.cluster.model_placement import Placement
from app.engine.workers.keep_awake import keep_awake
from app.engine.workers.worker_job import Job
from app.engine.workers.worker_process import Outcome, ending
from app.engine.workers.worker_recovery import record_stop, recover, restartable_cause
from app.engine.workers.worker_stop_time import NOTICE_SECONDS, end_worker, held_memory, stop_seconds, waiting_message
from app.exit_codes import INTERRUPTED, STOPPED
from app.store.database_connection import DATABASE
from app.store.file_locks import FileLock
from app.store.run_facts import WorkerDeath
from app.store.run_store import RunStore
from app.store.run_summary import SUPERVISOR_FILE, read_summary, worker_text
from app.system.process_signals import handle_stop_signals
from app.system.project_paths import free_space
from app.system.worker_logs import Log
from benchmarks.errors import StoreError
from mlx_backends.policy_engine import PREFIX as POLICY

POLL_SECONDS = 0.25
_FULL_DISK = 1 << 20
"""The free bytes below which a disk counts as full, and so explains a worker that died without a message."""
_LOG = "worker.log"


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a worker: its exit code, the reason for every code but 0, and its death if a new worker may survive."""

    code: int
    message: str = ""
    death: WorkerDeath | None = None


class Supervisor:
    """Runner of jobs. SIGINT and SIGTERM are passed on once, so that answers are committed; after that, SIGINT (Ctrl-C) kills.

    A worker that has not stopped :func:`stop_seconds` after the first signal is killed too: only requests in flight are lost.
    ``placement`` says which jobs run at the same time: by default, none do. ``reasons`` are sentences on why jobs have ended with
    other codes than 0.
    """

    def __init__(self, display: Display, placement: Placement | None = None) -> None:
        self.display = display
        self.interrupted = False
        self.reasons: list[str] = []
        self._placement = placement or Placement()
        self._active: dict[Job, Generator[None, None, int]] = {}
        self._workers: dict[Job, subprocess.Popen[bytes]] = {}
        self._locks: dict[Path, FileLock] = {}
        self._interrupted_at = math.inf

    def run(self, jobs: Sequence[Job]) -> int:
        """Run ``jobs``; return the highest of their exit codes, or 130 if interrupted."""
        before = handle_stop_signals(self._interrupt)
        worst_code = 0
        report_batch([folder for job in jobs for folder in job.runs])
        waiting = sorted(jobs, key=lambda job: -self._placement.size(job.models))
        try:
            with keep_awake(), self.display:
                while (waiting and not self.interrupted) or self._active:
                    self._start(waiting)
                    self._share_nodes()
                    worst_code = max(worst_code, self._turn())
        finally:
            self._end_workers()
            self._unlock(list(self._locks))
            standby_worker.discard()
            for number, handler in before.items():
                signal.signal(number, handler)
        return INTERRUPTED if self.interrupted else worst_code

    def _start(self, waiting: list[Job]) -> None:
        """Start the ``waiting`` jobs that can start now, and remove them from the list."""
        for job in list(waiting):
            if self.interrupted or not self._placement.start(job.runs, job.models):
                continue
            waiting.remove(job)
            self._announce(job, None)
            self._active[job] = self._run_job(job)
            if job.workers is not None:
                standby_worker.discard()
            elif waiting and job.model.startswith(POLICY):  # which leaves memory for the next one
                standby_worker.start(waiting[0].model)

    def _turn(self) -> int:
        """Look after each worker, then wait a little; return the highest exit code of jobs that have ended, or 0."""
        worst_code = 0
        for job, steps in list(self._active.items()):
            try:
                next(steps)
            except StopIteration as end:
                worst_code = max(worst_code, end.value)
                del self._active[job]
                self._placement.end(job.runs)
        _wait_for_any(list(self._workers.values()))
        return worst_code

    def _share_nodes(self) -> None:
        """Let the running jobs use the nodes that no job uses any more."""
        shared = self._placement.share()
        for job, worker in self._workers.items():
            if worker.stdin is not None and (nodes := shared.get(job.runs)):
                with suppress(OSError):  # it has ended
                    worker.stdin.write("".join(f"{node}\n" for node in nodes).encode())
                    worker.stdin.flush()

    def _announce(self, job: Job, worker: int | None) -> None:
        """Have the runs of a job count as planned until the process ``worker`` works on them; None for no process yet."""
        for folder in job.runs:
            with suppress(StoreError):  # another supervisor has the run, or the disk is full
                lock = self._locks.get(folder) or FileLock(folder / SUPERVISOR_FILE)
                if folder in self._locks:
                    lock.rename(worker_text(worker))
                elif lock.acquire(worker_text(worker), patience=0):
                    self._locks[folder] = lock

    def _unlock(self, folders: Sequence[Path]) -> None:
        for folder in folders:
            if (lock := self._locks.pop(folder, None)) is not None:
                lock.release()

    def _run_job(self, job: Job) -> Generator[None, None, int]:
        """Run a job to its end, and display that; return the exit code."""
        end = yield from self._run_workers(job)
        if end.message and end.message not in self.reasons:
            self.reasons.append(end.message)
        self._unlock(job.runs)
        self._show()
        return end.code

    def _run_workers(self, job: Job) -> Generator[None, None, _End]:
        """Run workers until one ends without a cause for a restart, or restarts are used up; return how that one ended."""
        restarts = 0
        while True:
            counts_before = _count_results(job)
            end = yield from self._run_worker(job)
            if end.death is None or self.interrupted:
                return end
            restarts = 1 if _count_results(job) > counts_before else restarts + 1
            sentence = end.death.sentence()
            log = job.runs[0] / _LOG
            if restarts > job.restarts:
                _write(job, f"{sentence}; it is not restarted.")
                repetition = f" (after {job.restarts} restarts without an answer)" if job.restarts else ""
                return _End(STOPPED, f"{job.runs[0].name}: {sentence}{repetition}; see {log} for details.")
            _write(job, f"{sentence}; restart {restarts} of {job.restarts}.")
            self.display.notice(f"{job.runs[0].name}: {sentence}; restart {restarts} of {job.restarts}.")
            job = replace(job, width=end.death.reduced_width or job.width)

    def _run_worker(self, job: Job) -> Generator[None, None, _End]:
        log = Log(job.runs[0], _LOG)
        if job.workers is None and (waiting := standby_worker.hand_over(job.model, job.to_json())) is not None:
            worker = waiting.process
            with log.pump("worker", waiting.errors) as pump:
                pass
        else:
            with log.pump("worker") as pump:
                # In its own session, so that Ctrl-C reaches only this process; with a pipe as input, so that it ends with us.
                worker = subprocess.Popen(
                    replace(job, avoid=self._placement.avoided(job.runs)).command(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=pump.fileno(),
                    start_new_session=True,
                    env=standby_worker.worker_environment(),
                )
        self._workers[job] = worker
        self._announce(job, worker.pid)
        if self.interrupted:  # before there was a worker
            worker.send_signal(signal.SIGTERM)
        held, is_killed = None, False
        while worker.poll() is None:
            self._show()
            yield
            waited = time.monotonic() - self._interrupted_at
            if waited < NOTICE_SECONDS or is_killed or worker.poll() is not None:
                continue
            if held is None:
                held = _held(job)
                self.display.notice(waiting_message(job.runs[0].name, held))
            if waited > stop_seconds(held):
                is_killed = True
                self._kill(job, worker, log, waited)
        del self._workers[job]
        pump.finish()
        log.close()
        for folder in job.runs:
            if (folder / f"{DATABASE}-wal").exists():
                with suppress(StoreError):
                    # Our reading may have kept the worker from merging its database into one file (see RunStore.close).
                    RunStore.open(folder).close()
        assert worker.stdout is not None
        report = worker.stdout.read()
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                stream.close()
        return self._outcome(job, worker, report, log.path)

    def _show(self) -> None:
        """Display the runs of the current jobs, restricted to the conditions that they answer."""
        runs = []
        for job in self._active:
            for run in map(read_summary, job.runs):
                progress = tuple(p for p in run.progress if not job.conditions or p.condition in job.conditions)
                runs.append(replace(run, progress=progress))
        self.display.update(runs)

    def _end_workers(self) -> None:
        # A worker is left only if the display failed, as it does when the reader of our output goes away.
        left = {job: worker for job, worker in self._workers.items() if worker.poll() is None}
        for worker in left.values():
            worker.terminate()
        for job, worker in left.items():
            end_worker(worker, stop_seconds(_held(job)))

    def _kill(self, job: Job, worker: subprocess.Popen[bytes], log: Log, waited: float) -> None:
        message = f"the worker did not stop within {waited:.0f} s and was killed"
        log.write("rashomon", f"{message}.")
        self.display.notice(f"{job.runs[0].name}: {message}; every answer reported done is safe.")
        worker.kill()

    def _outcome(self, job: Job, worker: subprocess.Popen[bytes], report: bytes, log: Path) -> _End:
        outcome, code = Outcome.read(report), worker.returncode
        if outcome is not None and not (outcome.death or outcome.failure):
            return _End(outcome.code, outcome.message)
        if self.interrupted or code in (
            -signal.SIGINT,
            -signal.SIGTERM,
        ):  # a worker that loads its model ends like this
            record_stop(job.runs, worker.pid)
            return _End(INTERRUPTED)
        if cause := restartable_cause(code, outcome):
            death = recover(job.runs, worker.pid, cause, memory=outcome is None or outcome.memory)
            return _End(STOPPED, death=death)
        if free_space(log.parent) < _FULL_DISK:
            return _End(STOPPED, f"the disk of {log.parent.parent} is full; free some space.")
        return _End(STOPPED, f"the worker of {log.parent.name} {ending(code, outcome)}; see {log} for details.")

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        is_second, self.interrupted = self.interrupted, True
        if not is_second:
            self._interrupted_at = time.monotonic()
        elif number != signal.SIGINT:  # another program's signal, or a second request to stop, is no insistence
            return
        for worker in list(self._workers.values()):
            if worker.poll() is None:
                worker.send_signal(signal.SIGKILL if is_second else signal.SIGTERM)


def _wait_for_any(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait a moment, but no longer than until one of ``workers`` has ended: the other end of its output is closed then."""
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            assert worker.stdout is not None
            selector.register(worker.stdout, selectors.EVENT_READ, worker)
        for key, _ in selector.select(POLL_SECONDS) if workers else ():
            with suppress(subprocess.TimeoutExpired):
                key.data.wait(POLL_SECONDS)  # it has written its report, and ends now


def _write(job: Job, text: str) -> None:
    with suppress(StoreError):
        log = Log(job.runs[0], _LOG)
        log.write("rashomon", text)
        log.close()


def _held(job: Job) -> int:
    """Return the most bytes of memory that the worker of a job may hold."""
    measured = [p.peak_memory for folder in job.runs for p in read_summary(folder).progress]
    return held_memory((job.model, *job.judges), max(measured, default=0))


def _count_results(job: Job) -> int:
    """Count the answers and verdicts in the runs of a job, without errors."""
    progress = [p for folder in job.runs for p in read_summary(folder).progress]
    judge_counts = [count for p in progress for count in p.judged.values()]
    return sum(p.done - p.errors for p in progress) + sum(count.total - count.failed for count in judge_counts)
