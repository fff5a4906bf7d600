"""Answering loop: keeps the backend busy, commits answers in groups, and applies the judges that need no model."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import NoneType
from typing import Any, NamedTuple

from app.engine.group_commit import GroupCommit
from app.engine.plugin_result_checks import usable_answer, verdict_problem
from app.engine.request_order import Order, PendingRequest, ordered_requests
from app.engine.requests_in_flight import InFlight
from app.engine.reused_answers import Lenders
from app.engine.work_record import WorkRecord
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer, PendingInstance
from benchmarks.base import Benchmark
from benchmarks.errors import BudgetError, ModelError
from benchmarks.protocols.protocols import Protocol
from benchmarks.varied_names import example_of
from benchmarks.vocabulary import Generation, Record, Request, Stated, Verdict
from judges.base import FunctionJudge
from mlx_backends.base import Backend

Stop = Callable[[], bool]
PAUSE_POLL_SECONDS = 0.2

_REMEMBERED = 1024
"""The answers that are remembered for equal requests, which come soon after each other in the order of requests."""


class _Answer(NamedTuple):
    """A generation, the engine that it came from, None for the run's usual one, and the time it was given, None for now."""

    generation: Generation
    engine: Mapping[str, Any] | None
    finished_at: float | None = None


@dataclass
class AnswerLoop:
    """Answering of the pending instances of a run.

    Of equal greedy requests in a varied build, where a level may leave an input as it is, only the first is submitted.

    Attributes:
        conditions: The conditions to answer; all if empty.
        only: The ordinals to answer; None for all.
        order: The order of those, if it is known.
        width: The most requests in flight, if fewer than the backend's capacity.
        in_flight: The record of what is in flight, for whoever finds this process dead.
        work: The record of the work, which commits the answers.
        lenders: The other runs whose answers are reused; None for none.
        commit: A function that takes the answers in place of ``work`` and ``store``; None for these.
        asks: False to reuse answers alone, and to leave all other requests for another loop.
        stop: Returns True once the loop must end. What has finished is committed; the rest is cancelled, to be asked again
            when the run resumes.
        paused: Returns True while nothing new may be submitted. What is in flight is still answered and committed.
    """

    store: RunStore
    backend: Backend
    protocol: Protocol
    judges: Sequence[FunctionJudge]
    benchmark: Benchmark
    conditions: Sequence[str] = ()
    only: Sequence[int] | None = None
    order: Order | None = None
    width: int | None = None
    in_flight: InFlight | None = None
    work: WorkRecord | None = None
    lenders: Lenders | None = None
    commit: Callable[[Sequence[NewAnswer]], None] | None = None
    asks: bool = True
    stop: Stop = lambda: False
    paused: Stop = lambda: False

    def __post_init__(self) -> None:
        self._waiting = ordered_requests(self.store, self.protocol, self.conditions, only=self.only, order=self.order)
        self._next_steps: deque[PendingRequest] = deque()  # of instances whose protocol has another step
        self._submitted: dict[str, PendingRequest] = {}
        self._equal: dict[str, list[PendingRequest]] = {}  # to those in flight, by the digest of the request
        self._answers: OrderedDict[str, _Answer] = OrderedDict()  # the last ones, by the digest of the request
        self._finished = GroupCommit(self.commit or (self.store.commit if self.work is None else self.work.commit))

    def run(self) -> None:
        """Answer every pending instance, until none is left or ``stop`` returns True.

        Raises BudgetError and ModelError if no further request is possible; what was answered by then is committed.
        """
        self._skip_time()
        try:
            while not self.stop():
                paused = self.paused()
                if paused and not self._submitted:
                    self._finished.commit()
                    time.sleep(PAUSE_POLL_SECONDS)
                    self._skip_time()
                    continue
                if not paused:
                    self._submit()
                if not self._submitted:
                    break
                for generation in self.backend.step():
                    self._finish_with_equal(usable_answer(generation))
                if self.only is not None and self.width == 1:
                    self._finished.commit()  # the next request may kill this process
                else:
                    self._finished.commit_if_due()
        except (BudgetError, ModelError):
            self._finished.commit()
            raise
        finally:
            for request_id in self._submitted:
                self.backend.cancel(request_id)
        self._finished.commit()
        if any(self.benchmark.basis(condition) for condition in self.benchmark.conditions):
            for judge in self.judges:  # an answer may have come before the sibling it is judged by
                judge_pending(self.store, judge, self.benchmark, stop=self.stop)

    def _skip_time(self) -> None:
        """Leave the time until now out of the record of the work."""
        if self.work is not None:
            self.work.lap()

    def _submit(self) -> None:
        """Submit requests up to the backend's capacity, after recording them as in flight."""
        requests: list[Request] = []
        width = min(self.backend.capacity, self.width or self.backend.capacity)
        while len(self._submitted) < width and not self.stop():
            pending = self._next_steps.popleft() if self._next_steps else next(self._waiting, None)
            if pending is None:
                break
            _, request = pending
            if self._is_stated(pending) or self._is_lent(pending) or not self.asks or self._is_asked(pending):
                continue
            if request.step:  # its earlier steps are made durable first, so that a kill repeats none of them
                self._finished.commit()
            self._submitted[request.id] = pending
            requests.append(request)
        if requests and self.in_flight is not None:
            self.in_flight.note(self._submitted.values())
        for request in requests:
            self.backend.submit(request)

    def _is_stated(self, pending: PendingRequest) -> bool:
        """Return whether the answer follows from the earlier steps; it is then stored without a call of the model."""
        _, request = pending
        if not isinstance(request.form, Stated):
            return False
        stated = Generation(request.id, request.form.text, "stop", scores=request.form.scores)
        self._finish_equal(pending, _Answer(stated, None))
        self._finished.commit_if_due()
        return True

    def _is_lent(self, pending: PendingRequest) -> bool:
        """Return whether another run answered an equal request; its answer is then stored without a call of the model."""
        about, request = pending
        loan = None if self.lenders is None else self.lenders.lend(about, request)
        if loan is None:
            return False
        self._submitted[request.id] = pending
        self._finish(_Answer(replace(loan.generation, request_id=request.id), None, loan.finished_at))
        self._finished.commit_if_due()
        return True

    def _is_asked(self, pending: PendingRequest) -> bool:
        """Return whether an equal request is in flight or was answered; ``pending`` is then answered along with it."""
        about, request = pending
        if request.decoding.temperature or example_of(about.instance.group) == about.instance.group:
            return False
        digest = request.digest
        if digest in self._equal:
            self._equal[digest].append(pending)
            return True
        if digest in self._answers:
            self._finish_equal(pending, self._answers[digest])
            self._finished.commit_if_due()
            return True
        self._equal[digest] = []
        return False

    def _finish_with_equal(self, generation: Generation) -> None:
        """Finish a request, and those that are equal to it; after an error, these are submitted themselves."""
        pending, request = self._submitted[generation.request_id]
        if self.lenders is not None:
            generation = self.lenders.checked(pending, request, generation)
        answer = _Answer(generation, self.backend.engine_of(generation.request_id))
        self._finish(answer)
        if not self._equal or (equal := self._equal.pop(request.digest, None)) is None:
            return
        if generation.finish_reason == "error":
            self._next_steps.extend(equal)
            return
        self._answers[request.digest] = answer
        if len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)
        for waiting in equal:
            self._finish_equal(waiting, answer)

    def _finish_equal(self, pending: PendingRequest, answer: _Answer) -> None:
        _, request = pending
        generation, engine, _ = answer
        self._submitted[request.id] = pending
        equal = replace(generation.without_call(), request_id=request.id, prompt_tokens=0, completion_tokens=0)
        self._finish(_Answer(equal, engine))

    def _finish(self, answer: _Answer) -> None:
        """Judge an answer and queue it for the next commit, and its instance's next step, if any, for submission."""
        generation, engine, finished_at = answer
        pending, request = self._submitted.pop(generation.request_id)
        generations = (*pending.generations, generation)
        following = None if generation.finish_reason == "error" else self.protocol.next(pending.instance, generations)
        record = Record(pending.instance, generations)
        new = self._answer(pending.ordinal, record, request, last=following is None)
        self._finished.add(replace(new, engine=engine, finished_at=finished_at))
        if following is not None:
            self._next_steps.append((PendingInstance(pending.ordinal, pending.instance, generations), following))

    def _answer(self, ordinal: int, record: Record, request: Request, *, last: bool) -> NewAnswer:
        generation, condition = record.generations[-1], record.instance.condition
        verdicts: tuple[Verdict, ...] = ()
        if last and generation.finish_reason != "error":
            ready, basis = self.store.basis_of(ordinal) if self.benchmark.basis(condition) else (True, None)
            record = Record(record.instance, record.generations, basis=basis)
            verdicts = tuple(judge_record(judge, record, self.benchmark) for judge in self.judges) if ready else ()
        return NewAnswer(
            ordinal=ordinal,
            condition=condition,
            step=request.step,
            request_digest=request.digest,
            generation=generation,
            last=last,
            verdicts=verdicts,
        )


def first_requests(
    store: RunStore, protocol: Protocol, conditions: Sequence[str], count: int, *, order: Order | None = None
) -> list[PendingRequest]:
    """Return the first ``count`` requests that an :class:`AnswerLoop` would submit now, in this ``order``."""
    requests = ordered_requests(store, protocol, conditions, order=order)
    return list(islice((pending for pending in requests if not isinstance(pending[1].form, Stated)), count))


def judge_pending(store: RunStore, judge: FunctionJudge, benchmark: Benchmark, *, stop: Stop = lambda: False) -> int:
    """Judge every answer that ``judge`` has not judged; return the number of them."""
    verdicts = GroupCommit(store.add_verdicts)
    count = 0
    for generation, record in store.unjudged(judge):
        if stop():
            break
        verdict = judge_record(judge, record, benchmark)
        verdicts.add((generation, record.instance.condition, verdict))
        verdicts.commit_if_due()
        count += 1
    verdicts.commit()
    return count


def judge_record(judge: FunctionJudge, record: Record, benchmark: Benchmark) -> Verdict:
    """Return the judge's verdict; "judge-failed" if the judge raises or returns what is no verdict, so that the run goes on."""
    try:
        verdict = judge.judge(record)
        problem = verdict_problem(verdict, judge, benchmark)
    except (Exception, SystemExit) as error:
        return Verdict(judge.id, "judge-failed", reason=_describe(error))
    if problem:
        raw = getattr(verdict, "raw", None)
        return Verdict(judge.id, "judge-failed", reason=problem, raw=raw if type(raw) is str else None)
    if type(verdict.label) in (str, NoneType):
        return verdict
    return replace(verdict, label=benchmark.labels[benchmark.labels.index(verdict.label)])  # a member of an enum


def _describe(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # of the error's own code
        return type(error).__name__
