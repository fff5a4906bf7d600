"""Worker process: answers and judges the runs of one model, one after the other, and frees its memory by ending.

It is started by :mod:`app.engine.workers.supervise`, or in advance by :mod:`app.engine.workers.standby`, and reports through the
runs' stores; as it ends, it writes one line of JSON with its outcome to standard output. It stops at the next answer when it is
interrupted, or when its parent closes its standard input.
"""

from __future__ import annotations

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

from app.engine import stopping_rule
from app.engine.endpoint_check import confirmed_answers, examine_endpoint
from app.engine.in_flight import InFlight, remove_leftover
from app.engine.judging import (
    ConcurrentJudging,
    first_judge_requests,
    is_unjudged,
    judge_answers,
    register_judge,
    save_remarks,
)
from app.engine.lenders import Lenders
from app.engine.loop import AnswerLoop, first_requests, judge_pending
from app.engine.request_order import Order, PendingRequest, ordered_requests
from app.engine.run_control import is_paused
from app.engine.work_record import WorkRecord
from app.engine.workers.cluster.backend import ClusterBackend
from app.engine.workers.cluster.connect import connect, node_job
from app.engine.workers.cluster.recorded_engine import record_engine, recorded_engine
from app.engine.workers.device_lock import acquire_device
from app.engine.workers.model_checks import CHECKED_REQUESTS, ModelChecks, choose_mode
from app.engine.workers.recovery import suspects
from app.engine.workers.standby import STANDBY
from app.engine.workers.supervise import Job
from app.engine.workers.worker_process import Outcome, end_process, outcome_of, take_output
from app.exit_codes import INTERRUPTED
from app.run_spec import RunSpec, parse_stored
from app.store.answer_sums import ENDPOINT_KEY
from app.store.data_types import NODES_KEY, NodeStatus
from app.store.locks import FileLock, busy_message
from app.store.run import RunStore
from app.store.run_facts import UNJUDGED_STATE, stop_reason
from app.system.logs import drop_output
from app.system.signals import ended_by_signals
from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.errors import BusyError, RashomonError
from benchmarks.registry import get_benchmark
from judges.base import FunctionJudge, Judge
from judges.registry import find_judges, judge_names
from judges.rubric import RubricJudge
from mlx_backends import remote
from mlx_backends.base import Backend, MediaPath, no_media
from mlx_backends.core.metal_faults import DeviceLostError
from mlx_backends.mlx.metal.switches import float_facts
from mlx_backends.models.host import host_info
from mlx_backends.options import RemoteOptions
from mlx_backends.registry import describe, import_libraries, load_backend
from mlx_backends.remote.backend import RemoteBackend
from mlx_backends.shared_names import without_folders
from mlx_backends.sight_check import ReplaceableMedia
from mlx_backends.stored_checks import StoredChecks

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
        self.loading = False
        self.backend: Backend | None = None
        self.media: ReplaceableMedia | None = None
        self.device_lock: FileLock | None = None
        self.avoided = set(job.avoid)
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
            self._free()
            for place, name in enumerate(local_judges, 1):
                self._judge_with_model(name, local_judges[place:])
                self._free()
            if self.stopped.is_set():
                return INTERRUPTED
        finally:
            self.close()
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
                self._note(store, state, str(error))
            raise
        if self.stopped.is_set():
            self._note(store, "interrupted")
        elif following:
            self._note(store, "queued", f"waiting for its judge {without_folders(following[0])}")
        elif reason := stop_reason(store):
            self._note(store, "stopped", reason)
        elif is_unjudged(store):  # another judge was asked for
            self._note(store, **UNJUDGED_STATE)
        else:
            self._note(store, "done")

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
        self._note(store, "judging" if unjudged or not self._is_unanswered(store) else "loading")
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
                self._note(store, "judging")
                if store.folder == self.job.runs[-1]:  # release the device while remote judges finish
                    self.close()

    def _is_unanswered(self, store: RunStore) -> bool:
        return self.job.data is not None and next(store.pending(self.job.conditions), None) is not None

    def _answer(self, store: RunStore, spec: RunSpec, functions: Sequence[FunctionJudge], benchmark: Benchmark) -> None:
        if self.job.data is None or not self._is_unanswered(store) or self.stopped.is_set():
            return
        parts = stopping_rule.next_ordinals(
            store,
            benchmark,
            self.job.judges[0],
            width=self.job.until_width,
            seed=spec.seed,
            conditions=self.job.conditions,
            stop=self.stopped.is_set,
            report=partial(self._note, store, "running"),
        )
        first_part = list(islice(parts, 1))
        if not first_part:  # the intervals are narrow enough already
            return
        # Answers of other runs are reused with their origin, not out of the cache.
        options = replace(self._remote_options(store, store.answer_usage()), always_scoped=True)
        # The backend, which the job's runs share, finds its media through the first one's.
        media = self.media = self.media or ReplaceableMedia(Build.open(self.job.data).media_path)
        backend = self._backend(store, spec.model, media, options, spec.kv_bits)
        if backend is None:
            return
        protocol = spec.to_protocol()
        info = backend.info
        engine = {**asdict(info), "machine": asdict(host_info()), **float_facts(info.engine, info.device)}
        if isinstance(backend, ClusterBackend):
            engine = dict(backend.engine)
        store.use_engine(engine)
        lenders = Lenders.of(store, spec, backend, engine)
        backend.use_sequential_mode()
        width = self._width(backend, exact=spec.exact)
        work = WorkRecord(store, backend)

        loop = partial(
            AnswerLoop,
            store,
            backend,
            protocol,
            judges=functions,
            benchmark=benchmark,
            conditions=self.job.conditions,
            lenders=lenders,
            stop=self.stopped.is_set,
            paused=partial(is_paused, store.folder),
        )

        def answer(only: Sequence[int] | None, at_once: int, order: Order | None = None) -> None:
            with InFlight(store.folder, width, engine) as in_flight:
                loop(
                    only=only,
                    order=order,
                    width=at_once,
                    in_flight=in_flight if self.job.workers is None else None,  # a node's death is not this process's
                    work=work,
                ).run()

        try:
            self._note(store, "running")
            if suspect_ordinals := suspects(store):
                answer(suspect_ordinals, 1)
            for function in functions:  # while the model works
                threading.Thread(target=function.prepare, daemon=True).start()
            checks = ModelChecks(
                store=store,
                backend=backend,
                media=media,
                width=width,
                exact=spec.exact,
                forced=self.job.force,
                on_cluster=self.job.workers is not None,
                engine=engine,
                loop=loop,
                judges=functions,
                benchmark=benchmark,
                work=work,
                note=partial(self._note, store),
                stop=self.stopped.is_set,
            )
            is_examined = not isinstance(backend, RemoteBackend)
            with confirmed_answers(store, backend, self.stopped.is_set):
                for part in chain(first_part, parts):
                    if lenders.has_offers and not self._is_left(store, loop(only=part, asks=False)):
                        continue
                    order = store.order_by_image(self.job.conditions, only=part)
                    if not is_examined and isinstance(backend, RemoteBackend):
                        self._examine(
                            store, backend, ordered_requests(store, protocol, self.job.conditions, order=order)
                        )
                        is_examined = True
                    if not checks.are_done:
                        pending = first_requests(store, protocol, self.job.conditions, CHECKED_REQUESTS, order=order)
                        checks.check(pending, self._left(store) if part is None else len(part))
                    answer(part, width, order)
        finally:
            if isinstance(backend, ClusterBackend):
                backend.unwatch()
            lenders.close()
            save_remarks(store, backend)
            work.save()

    def _is_left(self, store: RunStore, reuse: AnswerLoop) -> bool:
        """Reuse what other runs answered, and return whether anything is left to ask."""
        reuse.run()
        if reuse.lenders is not None:
            reuse.lenders.release()
        return next(store.pending(self.job.conditions, only=reuse.only), None) is not None

    def _left(self, store: RunStore) -> int:
        """Return the number of instances that the job still has to answer."""
        conditions = self.job.conditions
        return sum(p.total - p.done for p in store.progress() if not conditions or p.condition in conditions)

    def _examine(self, store: RunStore, backend: RemoteBackend, coming: Iterator[PendingRequest]) -> None:
        self._note(store, "loading", "checking that the model's server shows it pictures")
        requests = (request for _, request in coming)
        examine_endpoint(store, backend, requests, self.stopped.is_set, force=self.job.force)
        self._note(store, "running")

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
            self._backend(store, judge.model, no_media, self.job.remote_options, judge=judge) if has_work else None
        )
        if backend is not None:
            self._forget_failures(store, judge)
            exact = store.meta("spec").get("exact", False)
            backend.use_sequential_mode()
            width = self._width(backend, exact=exact)
            try:
                # Records the width; the judge's own errors are verdicts.
                with InFlight(store.folder, width, asdict(backend.info)):
                    requests = first_judge_requests(store, judge, CHECKED_REQUESTS)
                    if not exact and backend.is_worth_checking(requests, len(requests)):
                        choose_mode(store, backend, requests, partial(self._note, store), self.stopped.is_set)
                    self._note(store, "judging", f"by {judge.id}")
                    paused = partial(is_paused, store.folder)
                    judge_answers(store, judge, backend, width=width, stop=self.stopped.is_set, paused=paused)
            finally:
                if isinstance(backend, ClusterBackend):
                    backend.unwatch()

    def _forget_failures(self, store: RunStore, judge: Judge) -> None:
        """Set aside the failures of ``judge`` if they are to be retried, now that it is able to."""
        if self.job.retry_failed:
            store.retract(judge.id, status="judge-failed")

    def _width(self, backend: Backend, *, exact: bool) -> int:
        """Return the most requests in flight; nodes of a cluster answer one at a time by themselves where that is ``exact``."""
        most = backend.capacity if exact and self.job.workers is None else backend.max_capacity
        return min(most, self.job.width or most)

    def _backend(
        self,
        store: RunStore,
        model: str,
        media: MediaPath,
        options: RemoteOptions,
        kv_bits: int | None = None,
        *,
        judge: RubricJudge | None = None,
    ) -> Backend | None:
        """Return the backend of ``model``, which answers or is a ``judge``: on this machine, or on the job's cluster.

        It is loaded once. None if the wait for the device, or for a node, was interrupted.
        """
        if self.job.workers is not None:
            return self._cluster_backend(store, model, media, self.job.workers, kv_bits, judge)
        if self.backend is None:
            if self.device_lock is None and describe(model).needs_device:
                self.device_lock = acquire_device(
                    f"run {store.folder.name} (process {os.getpid()})",
                    waiting=lambda holder: self._note(store, "queued", f"waiting for {holder}"),
                    stop=self.stopped.is_set,
                    patience=self.job.wait,
                )
                if self.device_lock is None:
                    return None
            self._note(store, "loading")
            with self._ends_at_once():
                if not self.stopped.is_set():
                    self.backend = load_backend(
                        model,
                        media,
                        force=self.job.force,
                        remote=options,
                        max_in_flight=self.job.width,
                        kv_bits=kv_bits,
                    )
                    if type(self.backend).__module__.startswith(
                        "mlx_backends."
                    ):  # another package's code has no digest
                        self.backend.stored_checks = StoredChecks(asdict(self.backend.info))
        return self.backend

    def _cluster_backend(
        self,
        store: RunStore,
        model: str,
        media: MediaPath,
        workers: str,
        kv_bits: int | None,
        judge: RubricJudge | None,
    ) -> Backend | None:
        recorded = recorded_engine(store, judge, describe(model))
        watcher = partial(_save_nodes, store, "" if judge is None else judge.id)
        backend = self.backend
        if backend is None:
            self._note(store, "loading", f"starting workers on {workers}")
            owner = f"run {store.folder.name}"
            backend = self.backend = connect(
                workers,
                node_job(model, owner, force=self.job.force, max_in_flight=self.job.width, kv_bits=kv_bits),
                media,
                recorded=recorded,
                accept_engine=self.job.accept_engine,
                allow_open=self.job.allow_open_cluster,
                avoid=self.avoided,
            )
        assert isinstance(backend, ClusterBackend)
        backend.watch(watcher)
        if not backend.wait(self.stopped.is_set):
            return None
        record_engine(store, judge, recorded, backend.info, accept=self.job.accept_engine)
        return backend

    @contextmanager
    def _ends_at_once(self) -> Iterator[None]:
        """Let a signal, or the parent's end, end the process at once while a model is loading: every answer is committed."""
        self.loading = True
        try:
            with ended_by_signals():
                yield
        finally:
            self.loading = False

    def _remote_options(self, store: RunStore, usage: tuple[int, int, int]) -> RemoteOptions:
        """Return the job's remote options for a run that has used (calls, prompt tokens, completion tokens) so far."""
        _, prompt, completion = usage
        # What a server answered before it was found to drop pictures is not used again.
        problems = sum(bool(check["problem"]) for check in store.meta(ENDPOINT_KEY, []))
        scope = f"{store.folder.name} {store.meta('created')}{f' {problems}' if problems else ''}"
        return replace(self.job.remote_options, scope=scope, spent_input=prompt, spent_output=completion)

    def _note(self, store: RunStore, state: str, note: str = "") -> None:
        store.set_meta("state", {"state": state, "note": note, "pid": os.getpid()})

    def _free(self) -> None:
        """Free the memory of the loaded model, if any."""
        if self.backend is not None:
            self.backend.close()
        self.backend = None

    def close(self) -> None:
        """Free the model and the device."""
        self._free()
        if self.device_lock is not None:
            self.device_lock.release()
        self.device_lock = None


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
    with suppress(Exception):  # loading the model reports what is wrong
        import_libraries(model)
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
            worker.avoided.discard(line.decode().strip())  # a node that another run of the batch has left
    drop_output()
    worker.stopped.set()
    if worker.loading:
        os._exit(INTERRUPTED)


def _save_nodes(store: RunStore, judge: str, nodes: Sequence[NodeStatus]) -> None:
    """Store the nodes that answer a run, or those of a ``judge`` next to the others."""
    entries = [asdict(replace(node, judge=judge)) for node in nodes]
    store.change_meta(
        NODES_KEY, lambda known: [*(node for node in known or () if judge and node.get("judge") != judge), *entries]
    )


if __name__ == "__main__":
    main()
