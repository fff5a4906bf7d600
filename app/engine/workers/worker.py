"""A worker process: answers and judges the runs of one model, one after the other, then ends and so frees its memory.

Started by :mod:`app.engine.workers.supervise`. It reports through the runs' stores; the one line of JSON it writes to
its standard
output as it ends says how it went. It stops at the next answer when it is interrupted or when its standard input, the
other end of which its parent holds, is closed.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

from app.engine import stopping_rule
from app.engine.judging import ConcurrentJudging, enter, first_judgements, judge_answers, remark
from app.engine.loop import answer_pending, first_requests, judge_pending
from app.engine.workers.device_lock import acquire_device
from app.engine.workers.in_flight import InFlight, forget
from app.engine.workers.recovery import suspects
from app.engine.workers.run_control import is_paused
from app.engine.workers.supervise import Job
from app.run_spec import RunSpec, parse
from app.store.locks import FileLock, working
from app.store.run import RunStore
from app.system.logs import drop_output, report_exception, write_single_lines
from benchmarks.base import Benchmark, Request, get_benchmark
from benchmarks.build import Build
from benchmarks.errors import RashomonError, StoreError
from judges.base import FunctionJudge, Judge, find_judge, judge_names
from judges.rubric import RubricJudge
from mlx_backends import remote
from mlx_backends.base import Backend, MediaPath, no_media
from mlx_backends.core.batch_invariance import BatchInvariance, chosen
from mlx_backends.models.host import machine
from mlx_backends.registry import describe, load_backend
from mlx_backends.remote.options import RemoteOptions

INTERRUPTED = 130
FIRST_REQUESTS = 32
"""So many of a run's requests a backend is shown, to try some of them."""
ENOUGH_REQUESTS = 24
"""For fewer, finding out whether they can be answered together costs what it gains (``docs/performance.md``)."""


class StopFlag:
    """The wish that a worker stops, set by a signal handler or a thread.

    Not a threading.Event: it sets its flag under a lock, so a second signal within the handler of the first one would wait
    for that handler, which waits for it.
    """

    def __init__(self) -> None:
        self._wished = False

    def set(self) -> None:
        self._wished = True

    def is_set(self) -> bool:
        return self._wished


class Worker:
    """Works through a job; ``stopped`` is set by a signal or by the parent's end.

    The runs are answered one after the other, labelled by the judges that are functions as they go, and by those whose
    engine is elsewhere at the same time. Then the model's memory is freed, and each judge that is a model of this machine
    is loaded once for all the runs.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.stopped = StopFlag()
        self.loading = False
        self.backend: Backend | None = None
        self.lease: FileLock | None = None
        self._in_use: dict[Path, str] = {}

    def work(self) -> int:
        """Do the job; the exit code. Raises RashomonError."""
        try:
            for folder in self.job.runs:
                with self._locked(folder) as store:
                    if store is not None:
                        self._noted(store, self._answer_and_judge)
                if self.stopped.is_set():
                    return INTERRUPTED
            self._free()
            for name in self.job.judges:
                if name not in judge_names() and describe(name).needs_device:
                    self._judge_locally(name)
                    self._free()
            if self.stopped.is_set():
                return INTERRUPTED
        finally:
            self.close()
        if self._in_use:
            raise StoreError(f"{'; '.join(self._in_use.values())}; `rashomon runs` shows how far it is.")
        return 0

    @contextmanager
    def _locked(self, folder: Path) -> Iterator[RunStore | None]:
        with FileLock(folder / "lock") as lock:
            if lock.acquire(f"process {os.getpid()}"):
                with RunStore.open(folder) as store:
                    yield store
            else:
                self._in_use[folder] = working(lock)
                yield None

    def _noted(self, store: RunStore, work: Callable[[RunStore], None]) -> None:
        try:
            work(store)
        except RashomonError as error:
            with suppress(RashomonError):  # a full disk cannot take the note either
                self._note(store, "failed", str(error))
            raise
        enough = stopping_rule.reached(store)
        self._note(store, "interrupted" if self.stopped.is_set() else "stopped" if enough else "done", enough or "")

    def _answer_and_judge(self, store: RunStore) -> None:
        spec = parse(RunSpec, store.meta("spec"), str(store.folder))
        benchmark = get_benchmark(spec.benchmark)
        judges = [find_judge(name, benchmark) for name in self.job.judges]
        functions = [judge for judge in judges if isinstance(judge, FunctionJudge)]
        stop = self.stopped.is_set
        forget(store.folder)
        self._note(store, "judging")
        for function in functions:
            self._forget_failures(store, function)
            judge_pending(store, function, benchmark, stop=stop)
        elsewhere: list[tuple[RubricJudge, Callable[[], Backend]]] = []
        for judge in judges:
            if isinstance(judge, RubricJudge) and not judge.info.needs_device:
                enter(store, judge, accept_engine=self.job.accept_engine)
                terms = self._terms(store, store.judge_usage(judge.id))
                if self.job.retry_failed:  # the replies that could not be read are kept too
                    terms = replace(terms, replies=None)
                remote.ready(judge.model, terms)
                elsewhere.append((judge, partial(load_backend, judge.model, no_media, terms=terms)))
        with ConcurrentJudging(store.folder, elsewhere, benchmark, stop, retry_failed=self.job.retry_failed):
            self._answer(store, spec, functions, benchmark)
            if elsewhere and not stop():
                self._note(store, "judging")
                if store.folder == self.job.runs[-1]:  # others may have the device while the rest is judged elsewhere
                    self.close()

    def _answer(self, store: RunStore, spec: RunSpec, functions: Sequence[FunctionJudge], benchmark: Benchmark) -> None:
        if self.job.data is None or next(store.pending(self.job.conditions), None) is None or self.stopped.is_set():
            return
        parts = stopping_rule.parts(
            store,
            benchmark,
            self.job.judges[0],
            width=self.job.until_width,
            seed=spec.seed,
            conditions=self.job.conditions,
            stop=self.stopped.is_set,
            tell=partial(self._note, store, "running"),
        )
        begin = list(islice(parts, 1))
        if not begin:  # the intervals are narrow enough as it is
            return
        terms = self._terms(store, store.answer_usage())
        backend = self._backend(store, spec.model, Build.open(self.job.data).media_path, terms)
        if backend is None:
            return
        protocol = spec.protocol()
        engine = {**asdict(backend.info), "machine": asdict(machine())}
        store.use_engine(engine)
        backend.exact()
        widest = backend.capacity if spec.exact else backend.widest
        width = min(widest, self.job.width or widest)

        def answer(only: Sequence[int] | None, at_once: int) -> None:
            with InFlight(store.folder, width, engine) as under_way:
                answer_pending(
                    store,
                    backend,
                    protocol,
                    functions,
                    benchmark,
                    conditions=self.job.conditions,
                    only=only,
                    width=at_once,
                    under_way=under_way,
                    stop=self.stopped.is_set,
                    paused=partial(is_paused, store.folder),
                )

        try:
            self._note(store, "running")
            if alone := suspects(store):
                answer(alone, 1)
            proof: BatchInvariance | None = None
            tried = spec.exact or not backend.info.needs_device
            for part in chain(begin, parts):
                if not tried:
                    first = first_requests(store, protocol, self.job.conditions, FIRST_REQUESTS, only=part)
                    with InFlight(store.folder, width, engine) as under_way:
                        picked = {request.id for request in chosen([request for _, request in first])}
                        under_way.note([one for one in first if one[1].id in picked])
                        proof = self._prove(store, backend, [request for _, request in first])
                    tried = len(first) >= ENOUGH_REQUESTS
                    self._note(store, "running", proof.lacks if proof else "")
                answer(part, width)
        finally:
            remark(store, backend)

    def _prove(self, store: RunStore, backend: Backend, first: Sequence[Request]) -> BatchInvariance | None:
        """Have ``backend`` answer together, and with reuse, as far as that changes none of the ``first`` answers.

        None where they are too few to find out.
        """
        if len(first) < ENOUGH_REQUESTS or not backend.info.needs_device:
            return None
        self._note(store, "loading", "seeing whether it answers the same together as alone")
        if proof := backend.prove(first, self.stopped.is_set):
            found = {"at": time.time(), "model": backend.info.model, **asdict(proof)}
            store.change_meta("canary", lambda known: [*(known or []), found])
        return proof

    def _judge_locally(self, name: str) -> None:
        for folder in self.job.runs:
            if folder in self._in_use or self.stopped.is_set():
                continue
            with self._locked(folder) as store:
                if store is not None:
                    self._noted(store, lambda store: self._judge_run_locally(store, name))

    def _judge_run_locally(self, store: RunStore, name: str) -> None:
        benchmark = get_benchmark(store.meta("spec")["benchmark"])
        judge = find_judge(name, benchmark)
        assert isinstance(judge, RubricJudge)
        enter(store, judge, accept_engine=self.job.accept_engine)
        some = self.job.retry_failed or next(store.unjudged(judge.id, judge.conditions), None) is not None
        backend = self._backend(store, judge.model, no_media, self.job.terms) if some else None
        if backend is not None:
            self._forget_failures(store, judge)
            exact = store.meta("spec").get("exact", False)
            backend.exact()
            widest = backend.capacity if exact else backend.widest
            width = min(widest, self.job.width or widest)
            with InFlight(store.folder, width, asdict(backend.info)):  # for the width: no verdict is an error
                if not exact:
                    self._prove(store, backend, first_judgements(store, judge, FIRST_REQUESTS))
                self._note(store, "judging", f"by {judge.id}")
                paused = partial(is_paused, store.folder)
                judge_answers(store, judge, backend, benchmark, width=width, stop=self.stopped.is_set, paused=paused)

    def _forget_failures(self, store: RunStore, judge: Judge) -> None:
        """Set aside what ``judge`` failed on, if that is to be tried again; only now that it can be."""
        if self.job.retry_failed:
            store.retract(judge.id, status="judge-failed")

    def _backend(self, store: RunStore, model: str, media: MediaPath, terms: RemoteOptions) -> Backend | None:
        """The backend of ``model``, loaded once; None where the wait for the device was interrupted."""
        if self.backend is None:
            if self.lease is None and describe(model).needs_device:
                self.lease = acquire_device(
                    f"run {store.folder.name} (process {os.getpid()})",
                    waiting=lambda holder: self._note(store, "queued", f"waiting for {holder}"),
                    stop=self.stopped.is_set,
                )
                if self.lease is None:
                    return None
            self._note(store, "loading")
            with self._ends_at_once():
                if not self.stopped.is_set():
                    self.backend = load_backend(
                        model, media, force=self.job.force, terms=terms, under_way=self.job.width
                    )
        return self.backend

    @contextmanager
    def _ends_at_once(self) -> Iterator[None]:
        """Have a signal, or the parent's end, end the process while a model is loaded.

        Every answer is committed by then, and a library may be long in coming back to where a handler would run.
        """
        before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)}
        self.loading = True
        try:
            yield
        finally:
            self.loading = False
            for number, handler in before.items():
                signal.signal(number, handler)

    def _terms(self, store: RunStore, usage: tuple[int, int, int]) -> RemoteOptions:
        """The job's terms for one run, after the usage so far: (calls, prompt tokens, completion tokens)."""
        _, prompt, completion = usage
        scope = f"{store.folder.name} {store.meta('created')}"
        return replace(self.job.terms, scope=scope, spent_input=prompt, spent_output=completion)

    def _note(self, store: RunStore, state: str, note: str = "") -> None:
        store.set_meta("state", {"state": state, "note": note, "pid": os.getpid()})

    def _free(self) -> None:
        """Free the memory of the model there is."""
        if self.backend is not None:
            self.backend.close()
        self.backend = None

    def close(self) -> None:
        """Free the model and the device."""
        self._free()
        if self.lease is not None:
            self.lease.release()
        self.lease = None


def main() -> None:
    """The worker process's entry; its one argument is the job."""
    job = Job.from_json(sys.argv[1])
    # Libraries print; the report must be the only thing on the pipe to the parent.
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    faulthandler.enable()
    write_single_lines()
    sys.stdout = sys.stderr
    worker = Worker(job)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.stopped.set())
    threading.Thread(target=_watch_parent, args=(worker,), daemon=True).start()
    code, message, short = 1, "", ""
    try:
        code = worker.work()
    except RashomonError as error:
        code, message = error.exit_code, str(error)
    except Exception as error:
        from mlx_backends.mlx.load import one_line
        from mlx_backends.mlx.memory_limits import out_of_memory

        report_exception(error)
        if not out_of_memory(error):
            os._exit(1)
        short = one_line(error)
    with suppress(OSError):  # the parent may be gone
        print(json.dumps({"code": code, "message": message, "short": short}), file=report, flush=True)
    # Skipping the interpreter's teardown: library threads must not keep a finished worker, and its device, alive.
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def _watch_parent(worker: Worker) -> None:
    while os.read(0, 4096):
        pass
    drop_output()
    worker.stopped.set()
    if worker.loading:
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
