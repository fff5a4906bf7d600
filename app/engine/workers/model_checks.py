"""Checks of a run's model by the first requests: that it sees its images, and in which mode its answers stay the same.

The checks compare with the answers that the run is given anyway. A run that is refused has none of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.engine.answer_loop import AnswerLoop, judge_pending
from app.engine.request_order import PendingRequest
from app.engine.requests_in_flight import InFlight
from app.engine.work_record import WorkRecord
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from benchmarks.base import Benchmark
from benchmarks.errors import ModelError
from benchmarks.vocabulary import Request
from judges.base import FunctionJudge
from mlx_backends.base import Backend
from mlx_backends.core.batch_invariance import BatchInvariance, select_requests
from mlx_backends.sight_check import ReplaceableMedia, sight_requests, stored_or_checked_sight

CHECKED_REQUESTS = 32
"""The number of a run's first requests from which the checks select some."""


@dataclass
class ModelChecks:
    """Checks of the model that answers one run.

    Attributes:
        store: The run's store.
        backend: The loaded model.
        media: The function with which it was loaded.
        width: The most requests in flight.
        engine: What the answers are stored with.
        loop: Makes the loop that answers instances of the run.
        judges: Judge the answers, of ``benchmark``, once these are stored: they load what they need in the meantime.
        work: The record of the work, which commits the answers.
        exact: True if every answer is computed separately.
        forced: True if a model that does not see is to answer all the same.
        on_cluster: True if the nodes of a cluster answer, whose answers are not observed.
        note: Records a state of the run, and a note on it.
        stop: Returns True once the run must end.
    """

    store: RunStore
    backend: Backend
    media: ReplaceableMedia
    width: int
    engine: Mapping[str, Any]
    loop: Callable[..., AnswerLoop]
    judges: Sequence[FunctionJudge]
    benchmark: Benchmark
    work: WorkRecord
    exact: bool
    forced: bool
    on_cluster: bool
    note: Callable[..., None]
    stop: Callable[[], bool]

    def __post_init__(self) -> None:
        self._sees = False
        self._has_mode = self.exact or not self.backend.info.needs_device

    @property
    def are_done(self) -> bool:
        return self._sees and self._has_mode

    def check(self, pending: Sequence[PendingRequest], total: int) -> None:
        """Check the model by the first ``pending`` requests of ``total``, and let it answer some of them.

        Raises ModelError if the model does not see its images, or answers differently when asked twice, unless forced; none of
        these answers is stored then.
        """
        first = self._first(pending)
        answers = [] if self.on_cluster else self._answers(first, pending)
        if not self.stop() and not self._sees:
            self._check_sight(pending)
        if self.stop():
            return
        self._sees = True
        self._commit(answers)
        if not self._has_mode and not self.stop():
            self._has_mode = self._choose_mode(pending, total)

    def _first(self, pending: Sequence[PendingRequest]) -> list[PendingRequest]:
        """Return the requests to answer first: those that the sight check replaces images of, or else the first one."""
        selected = [] if self._sees else self._sighted(pending)
        if not selected and not self._has_mode:
            return list(pending[:1])
        return [item for item in pending if item[1] in selected]

    def _answers(self, requests: Sequence[PendingRequest], pending: Sequence[PendingRequest]) -> Sequence[NewAnswer]:
        """Answer ``requests`` of those ``pending`` one at a time, for the checks to observe; their answers are not stored yet."""
        if not requests:
            return []
        coming = [] if self.exact else [request for _, request in pending]
        self.backend.observe([request for _, request in requests], coming)
        ordinals, answers = [instance.ordinal for instance, _ in requests], list[NewAnswer]()
        with InFlight(self.store.folder, self.width, self.engine) as in_flight:
            loop = self.loop(
                only=ordinals, judges=(), in_flight=in_flight, width=1, work=self.work, commit=answers.extend
            )
            loop.run()
        self.work.add_time()
        return answers

    def _commit(self, answers: Sequence[NewAnswer]) -> None:
        self.work.lap()  # the checks since then are no answering
        if answers:
            self.work.commit(answers)
            for judge in self.judges:
                judge_pending(self.store, judge, self.benchmark, stop=self.stop)

    def _sighted(self, pending: Sequence[PendingRequest]) -> list[Request]:
        if not self.backend.info.needs_device or "image" not in self.backend.info.takes:
            return []
        return sight_requests([request for _, request in pending])

    def _check_sight(self, pending: Sequence[PendingRequest]) -> None:
        selected, backend = self._sighted(pending), self.backend
        if not selected:
            return
        self.note("loading", "checking that the model sees its images")
        with self._in_flight(pending, selected):
            result = stored_or_checked_sight(backend, self.media, selected, backend.stored_checks, self.stop)
        self.note("running")
        if result is not None:
            entry = {"at": time.time(), **asdict(result), "family": backend.family, "forced": self.forced}
            self.store.change_meta("sight", lambda known: [*(known or []), entry], durable=False)
            if result.problem and not self.forced:
                raise ModelError(
                    f"{backend.info.model} is refused: {result.problem}. Take another model, or add --force to get its answers."
                )

    def _choose_mode(self, pending: Sequence[PendingRequest], total: int) -> bool:
        """Let the model answer in the mode that is worth its check; return False if there were too few requests to decide."""
        requests = [request for _, request in pending]
        if not self.backend.is_worth_checking(requests, total):
            return False
        references = [request.id for request in self.backend.references if self.backend.observed(request) is None]
        self._commit(self._answers([item for item in pending if item[1].id in references], pending))
        with self._in_flight(pending, select_requests(requests)):
            invariance = choose_mode(self.store, self.backend, requests, self.note, self.stop)
        self.note("running", invariance.lacks if invariance else "")
        return True

    def _in_flight(self, pending: Sequence[PendingRequest], requests: Sequence[Request]) -> InFlight:
        """Return the record of ``requests`` as in flight, for whoever finds this process dead during a check."""
        names = {request.id for request in requests}
        noted = [item for item in pending if item[1].id in names]
        return InFlight(self.store.folder, self.width, asdict(self.backend.info), noted)


def choose_mode(
    store: RunStore,
    backend: Backend,
    requests: Sequence[Request],
    note: Callable[..., None],
    stop: Callable[[], bool],
) -> BatchInvariance | None:
    """Let ``backend`` batch and reuse work as far as that changes none of the answers to ``requests``, and record the result."""
    note("loading", "checking that batched answers equal sequential ones")
    if invariance := backend.choose_mode(requests, stop):
        result = {"at": time.time(), "model": backend.info.model, **asdict(invariance)}
        store.change_meta("canary", lambda known: [*(known or []), result], durable=False)
    return invariance
