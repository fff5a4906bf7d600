"""Worker process: answers and judges the runs of one model, one after the other, and frees its memory by ending.

It is started by :mod:`app.engine.workers.worker_supervisor`, or in advance by :mod:`app.engine.workers.standby_worker`, and
reports through the runs' stores; as it ends, it writes one line of JSON with its outcome to standard output. It stops at the next
answer when it is interrupted, or when its parent closes its standard input.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from queue import SimpleQueue

from app.engine import stop_at_interval_width
from app.engine.answer_loop import judge_pending
from app.engine.model_judging import ConcurrentJudging, first_judge_requests, is_unjudged, judge_answers, register_judge
from app.engine.requests_in_flight import InFlight, remove_leftover
from app.engine.run_control import is_paused
from app.engine.workers.model_checks import CHECKED_REQUESTS, choose_mode
from app.engine.workers.run_answering import RunAnswering
from app.engine.workers.standby_worker import STANDBY
from app.engine.workers.worker_job import Job
from app.engine.workers.worker_model import WorkerModel
from app.engine.workers.worker_process import Outcome, end_process, note_state, outcome_of, take_output
from app.exit_codes import INTERRUPTED
from app.run_spec import RunSpec, parse_stored
from app.store.answer_sums import ENDPOINT_KEY
from app.store.file_locks import FileLock, busy_message
from app.store.run_facts import UNJUDGED_STATE, stop_reason
from app.store.run_store import RunStore
from app.system.worker_logs import drop_output
from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.errors import BusyError, RashomonError
from benchmarks.registry import get_benchmark
from judges.base import FunctionJudge, Judge
from judges.judge_registry import find_judges, judge_names
from judges.rubric_judge import RubricJudge
from mlx_backends import remote
from mlx_backends.base import Backend, no_media
from mlx_backends.core.metal_faults import DeviceLostError
from mlx_backends.engine_registry import describe, import_libraries, load_backend
from mlx_backends.options import RemoteOptions
from mlx_backends.portable_model_names import without_folders
from mlx_backends.sight_check import ReplaceableMedia

SWITCH_SECONDS = 0.0005
"""Time after which a thread that prepares images or verdicts gives way to the one that has the device compute: a tenth of
Python's own, since a token can take less."""


class StopFlag:
    """A flag, such as a stop request, set by a signal handler or a thread.

    Unlike a threading.Event, it takes no lock, so that a second signal within the handler of the first cannot deadlock.
    """

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set


class Worker:
    """Worker for one job; ``stopped`` is set by a signal or by the parent's end.

    The runs are answered one after the other. Judges by rule label each answer at once, and remote judges work concurrently.
    Then the model's memory is freed, and each local judge model is loaded once for all runs.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.stopped = StopFlag()
        self.model = WorkerModel(job, self.stopped.is_set)
        self._media: ReplaceableMedia | None = None
        self._in_use: dict[Path, str] = {}
        self._locks: dict[Path, FileLock] = {}

    def work(self) -> int:
        """Do the job and return the exit code. Raises RashomonError."""
        try:
            local_judges = [
                name for name in self.job.judges if name not in judge_names() and describe(name).needs_device
            ]
            for folder in self.job.runs:
                with self._locked(folder, local_judges) as store:
                    if store is not None:
                        self._record_end(store, self._answer_and_judge, local_judges)
                if self.stopped.is_set():
                    return INTERRUPTED
            self.model.free()
            for place, name in enumerate(local_judges, 1):
                self._judge_with_model(name, local_judges[place:])
                self.model.free()
            if self.stopped.is_set():
                return INTERRUPTED
        finally:
            self.model.close()
            for lock in self._locks.values():
                lock.release()
        if self._in_use:
            raise BusyError(f"{'; '.join(self._in_use.values())}; `rashomon runs` shows how far it is.")
        return 0

    @contextmanager
    def _locked(self, folder: Path, following: Sequence[str]) -> Iterator[RunStore | None]:
        """Yield a run's store, None if another process works on it; it stays locked if judges are ``following``."""
        lock = self._locks.setdefault(folder, FileLock(folder / "lock"))
        if not lock.held and not lock.acquire(f"process {os.getpid()}"):
            self._in_use[folder] = busy_message(lock)
            yield None
            return
        try:
            with RunStore.open(folder) as store:
                yield store
        finally:
            if not following:
                lock.release()

    def _record_end(self, store: RunStore, work: Callable[[RunStore], None], following: Sequence[str]) -> None:
        """Do ``work`` and record the run's state afterwards: done, unless judges are ``following``."""
        try:
            work(store)
        except DeviceLostError:  # the next worker resumes the run
            raise
        except RashomonError as error:
            state = "interrupted" if isinstance(error, BusyError) else "failed"  # nothing fails on a busy device
            with suppress(RashomonError):  # a full disk cannot take the state either
                note_state(store, state, str(error), ended=True)
            raise
        if self.stopped.is_set():
            note_state(store, "interrupted", ended=True)
        elif following:
            note_state(store, "queued", f"waiting for its judge {without_folders(following[0])}", ended=True)
        elif reason := stop_reason(store):
            note_state(store, "stopped", reason, ended=True)
        elif is_unjudged(store):  # another judge was asked for
            note_state(store, **UNJUDGED_STATE, ended=True)
        else:
            note_state(store, "done", ended=True)

    def _answer_and_judge(self, store: RunStore) -> None:
        spec = parse_stored(RunSpec, store.meta("spec"), str(store.folder))
        benchmark = get_benchmark(spec.benchmark)
        judges = find_judges(self.job.judges, benchmark, self.job.undecided_by, self.job.official_code)
        functions = [judge for judge in judges if isinstance(judge, FunctionJudge)]
        stop = self.stopped.is_set
        remove_leftover(store.folder)
        for function in functions:
            self._forget_failures(store, function)
        unjudged = any(next(store.unjudged(function), None) is not None for function in functions)
        note_state(store, "judging" if unjudged or not self._is_unanswered(store) else "loading")
        for function in functions:
            judge_pending(store, function, benchmark, stop=stop)
        remote_judges: list[tuple[RubricJudge, Callable[[], Backend]]] = []
        for judge in judges:
            if isinstance(judge, RubricJudge) and not judge.info.needs_device:
                register_judge(store, judge, accept_engine=self.job.accept_engine)
                options = self._remote_options(store, store.judge_usage(judge.id))
                if self.job.retry_failed:  # the cache holds the unreadable replies too
                    options = replace(options, replies=None)
                remote.check_ready(judge.model, options)
                remote_judges.append((judge, partial(load_backend, judge.model, no_media, remote=options)))
        with ConcurrentJudging(store.folder, remote_judges, stop, retry_failed=self.job.retry_failed):
            self._answer(store, spec, functions, benchmark)
            if remote_judges and not stop():
                note_state(store, "judging")
                if store.folder == self.job.runs[-1]:  # release the device while remote judges finish
                    self.model.close()

    def _is_unanswered(self, store: RunStore) -> bool:
        return self.job.data is not None and next(store.pending(self.job.conditions), None) is not None

    def _answer(self, store: RunStore, spec: RunSpec, functions: Sequence[FunctionJudge], benchmark: Benchmark) -> None:
        if self.job.data is None or not self._is_unanswered(store) or self.stopped.is_set():
            return
        parts = stop_at_interval_width.next_ordinals(
            store,
            benchmark,
            self.job.judges[0],
            width=self.job.until_width,
            seed=spec.seed,
            conditions=self.job.conditions,
            stop=self.stopped.is_set,
            report=partial(note_state, store, "running"),
        )
        first_part = list(islice(parts, 1))
        if not first_part:  # the intervals are narrow enough already
            return
        # Answers of other runs are reused with their origin, not out of the cache.
        options = replace(self._remote_options(store, store.answer_usage()), always_scoped=True)
        # The backend, which the job's runs share, finds its media through the first one's.
        media = self._media = self._media or ReplaceableMedia(Build.open(self.job.data).media_path)
        backend = self.model.load(store, spec.model, media, options, spec.kv_bits)
        if backend is None:
            return
        backend.use_sequential_mode()  # its width is that of this mode
        answering = RunAnswering(
            self.job,
            store,
            spec,
            benchmark,
            functions,
            backend,
            media,
            self.model.engine(backend),
            self.model.width(backend, exact=spec.exact),
            self.stopped.is_set,
        )
        try:
            answering.answer(chain(first_part, parts))
        finally:
            self.model.unwatch()

    def _judge_with_model(self, name: str, following: Sequence[str]) -> None:
        for folder in self.job.runs:
            if folder in self._in_use or self.stopped.is_set():
                continue
            with self._locked(folder, following) as store:
                if store is not None:
                    self._record_end(store, lambda store: self._judge_run_with_model(store, name), following)

    def _judge_run_with_model(self, store: RunStore, name: str) -> None:
        benchmark = get_benchmark(store.meta("spec")["benchmark"])
        (judge,) = find_judges([name], benchmark, self.job.undecided_by, self.job.official_code)
        assert isinstance(judge, RubricJudge)
        elsewhere = self.job.workers is not None  # where nodes check the engine themselves
        register_judge(store, judge, accept_engine=self.job.accept_engine or elsewhere)
        has_work = self.job.retry_failed or next(store.unjudged(judge), None) is not None
        backend = (
            self.model.load(store, judge.model, no_media, self.job.remote_options, judge=judge) if has_work else None
        )
        if backend is not None:
            self._forget_failures(store, judge)
            exact = store.meta("spec").get("exact", False)
            backend.use_sequential_mode()
            width = self.model.width(backend, exact=exact)
            try:
                # Records the width; the judge's own errors are verdicts.
                with InFlight(store.folder, width, asdict(backend.info)):
                    requests = first_judge_requests(store, judge, CHECKED_REQUESTS)
                    if not exact and backend.is_worth_checking(requests, len(requests)):
                        choose_mode(store, backend, requests, partial(note_state, store), self.stopped.is_set)
                    note_state(store, "judging", f"by {judge.id}")
                    paused = partial(is_paused, store.folder)
                    judge_answers(store, judge, backend, width=width, stop=self.stopped.is_set, paused=paused)
            finally:
                self.model.unwatch()

    def _forget_failures(self, store: RunStore, judge: Judge) -> None:
        """Set aside the failures of ``judge`` if they are to be retried, now that it is able to."""
        if self.job.retry_failed:
            store.retract(judge.id, status="judge-failed")

    def _remote_options(self, store: RunStore, usage: tuple[int, int, int]) -> RemoteOptions:
        """Return the job's remote options for a run that has used (calls, prompt tokens, completion tokens) so far."""
        _, prompt, completion = usage
        # What a server answered before it was found to drop pictures is not used again.
        problems = sum(bool(check["problem"]) for check in store.meta(ENDPOINT_KEY, []))
        scope = f"{store.folder.name} {store.meta('created')}{f' {problems}' if problems else ''}"
        return replace(self.job.remote_options, scope=scope, spent_input=prompt, spent_output=completion)


def main() -> None:
    """Run the worker process, whose argument is the job; or ``--standby`` and a model, and the job comes on standard input."""
    report = take_output()
    sys.setswitchinterval(SWITCH_SECONDS)
    worker = Worker(_wait_for_job(sys.argv[2]) if sys.argv[1] == STANDBY else Job.from_json(sys.argv[1]))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.stopped.set())
    threading.Thread(target=_watch_parent, args=(worker,), daemon=True).start()
    try:
        outcome = Outcome(worker.work())
    except BaseException as error:  # also SystemExit, which a plugin may raise
        outcome = outcome_of(error)
    end_process(report, outcome)


def _wait_for_job(model: str) -> Job:
    """Import what will load ``model``, then return the job from standard input. End the process if the parent ends first."""
    lines: SimpleQueue[bytes] = SimpleQueue()
    ready = StopFlag()
    threading.Thread(target=_read_job, args=(lines, ready), daemon=True).start()
    gc.disable()  # it would search what is imported, which stays for good, again and again
    with suppress(Exception):  # loading the model reports what is wrong
        import_libraries(model)
    gc.freeze()
    gc.enable()
    job = Job.from_json(lines.get().decode())
    ready.set()
    return job


def _read_job(lines: SimpleQueue[bytes], ready: StopFlag) -> None:
    """Read the job; end the process if the parent ends before the worker is ``ready``, which then watches the parent itself."""
    data = b""
    while piece := os.read(0, 65536):
        data += piece
        if data.endswith(b"\n"):
            lines.put(data)
    if not ready.is_set():
        os._exit(INTERRUPTED)


def _watch_parent(worker: Worker) -> None:
    with open(0, "rb", buffering=0, closefd=False) as orders, suppress(OSError):
        for line in orders:
            worker.model.avoided.discard(line.decode().strip())  # a node that another run of the batch has left
    drop_output()
    worker.stopped.set()
    if worker.model.is_loading:
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
