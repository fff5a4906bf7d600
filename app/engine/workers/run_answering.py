"""Answering of one run by a worker: what killed a process first, then the checks of the model, then the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from app.engine.answer_loop import AnswerLoop, first_requests
from app.engine.endpoint_check import as_remote, confirmed_answers, examine_endpoint
from app.engine.model_judging import save_remarks
from app.engine.request_order import Order, PendingRequest, ordered_requests
from app.engine.requests_in_flight import InFlight
from app.engine.reused_answers import Lenders
from app.engine.run_control import is_paused
from app.engine.work_record import WorkRecord
from app.engine.workers.model_checks import CHECKED_REQUESTS, ModelChecks
from app.engine.workers.worker_job import Job
from app.engine.workers.worker_process import note_state
from app.engine.workers.worker_recovery import suspects
from app.run_spec import RunSpec
from app.store.run_store import RunStore
from benchmarks.base import Benchmark
from judges.base import FunctionJudge
from mlx_backends.base import Backend
from mlx_backends.sight_check import ReplaceableMedia

if TYPE_CHECKING:
    from mlx_backends.remote.remote_backend import RemoteBackend


@dataclass
class RunAnswering:
    """Answering of the pending instances of a run.

    Attributes:
        job: The worker's job.
        store: The run's store.
        spec: The run's spec.
        benchmark: The run's benchmark.
        judges: The judges by rule, which label each answer at once.
        backend: The loaded model.
        media: The function with which it was loaded.
        engine: What the answers are stored with.
        width: The most requests in flight.
        stop: Returns True once the worker must end.
    """

    job: Job
    store: RunStore
    spec: RunSpec
    benchmark: Benchmark
    judges: Sequence[FunctionJudge]
    backend: Backend
    media: ReplaceableMedia
    engine: Mapping[str, Any]
    width: int
    stop: Callable[[], bool]

    def __post_init__(self) -> None:
        self._protocol = self.spec.to_protocol()
        self.store.use_engine(self.engine)
        self._lenders = Lenders.of(self.store, self.spec, self.backend, self.engine)
        self._work = WorkRecord(self.store, self.backend)

    def answer(self, parts: Iterable[Sequence[int] | None]) -> None:
        """Answer ``parts``, the ordinals of each or None for all, one after the other; what killed a process comes first."""
        try:
            note_state(self.store, "running")
            if suspect_ordinals := suspects(self.store):
                self._answer(suspect_ordinals, 1)
            for judge in self.judges:  # while the model works
                threading.Thread(target=judge.prepare, daemon=True).start()
            with confirmed_answers(self.store, as_remote(self.backend), self.stop):
                self._answer_parts(parts)
        finally:
            self._lenders.close()
            save_remarks(self.store, self.backend)
            self._work.save()

    def _answer_parts(self, parts: Iterable[Sequence[int] | None]) -> None:
        store, conditions = self.store, self.job.conditions
        checks, unexamined = self._checks(), as_remote(self.backend)
        for part in parts:
            if self._lenders.has_offers and not self._is_left(self._loop(only=part, asks=False)):
                continue
            order = store.order_by_image(conditions, only=part)
            if unexamined is not None:
                self._examine(unexamined, ordered_requests(store, self._protocol, conditions, order=order))
                unexamined = None
            if not checks.are_done:
                pending = first_requests(store, self._protocol, conditions, CHECKED_REQUESTS, order=order)
                checks.check(pending, self._count_left() if part is None else len(part))
            self._answer(part, self.width, order)

    def _checks(self) -> ModelChecks:
        return ModelChecks(
            store=self.store,
            backend=self.backend,
            media=self.media,
            width=self.width,
            exact=self.spec.exact,
            forced=self.job.force,
            on_cluster=self.job.workers is not None,
            engine=self.engine,
            loop=self._loop,
            judges=self.judges,
            benchmark=self.benchmark,
            work=self._work,
            note=partial(note_state, self.store),
            stop=self.stop,
        )

    def _loop(self, **options: Any) -> AnswerLoop:
        standard: dict[str, Any] = {
            "judges": self.judges,
            "benchmark": self.benchmark,
            "conditions": self.job.conditions,
            "lenders": self._lenders,
            "stop": self.stop,
            "paused": partial(is_paused, self.store.folder),
        }
        return AnswerLoop(self.store, self.backend, self._protocol, **(standard | options))

    def _answer(self, only: Sequence[int] | None, width: int, order: Order | None = None) -> None:
        with InFlight(self.store.folder, self.width, self.engine) as in_flight:
            self._loop(
                only=only,
                order=order,
                width=width,
                in_flight=in_flight if self.job.workers is None else None,  # a node's death is not this process's
                work=self._work,
            ).run()

    def _is_left(self, reuse: AnswerLoop) -> bool:
        """Reuse what other runs answered, and return whether anything is left to ask."""
        reuse.run()
        if reuse.lenders is not None:
            reuse.lenders.release()
        return next(self.store.pending(self.job.conditions, only=reuse.only), None) is not None

    def _count_left(self) -> int:
        """Return the number of instances that the job still has to answer."""
        conditions = self.job.conditions
        return sum(p.total - p.done for p in self.store.progress() if not conditions or p.condition in conditions)

    def _examine(self, backend: RemoteBackend, coming: Iterator[PendingRequest]) -> None:
        note_state(self.store, "loading", "checking that the model's server shows it pictures")
        requests = (request for _, request in coming)
        examine_endpoint(self.store, backend, requests, self.stop, force=self.job.force)
        note_state(self.store, "running")
