"""The engine's loop: keep the backend fed, make answers durable in groups, judge what a function can judge at once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from app.engine.group_commit import GroupCommit
from app.engine.request_order import Asked, adjacent
from app.engine.workers.in_flight import InFlight
from app.store.rows import NewAnswer, PendingInstance
from app.store.run import RunStore
from benchmarks.base import Benchmark, Generation, Protocol, Record, Request, Verdict
from benchmarks.errors import BudgetError, ModelError
from judges.base import FunctionJudge
from mlx_backends.base import Backend

Stop = Callable[[], bool]
PAUSE_POLL_SECONDS = 0.2


def answer_pending(
    store: RunStore,
    backend: Backend,
    protocol: Protocol,
    judges: Sequence[FunctionJudge],
    benchmark: Benchmark,
    *,
    conditions: Sequence[str] = (),
    only: Sequence[int] | None = None,
    width: int | None = None,
    under_way: InFlight | None = None,
    stop: Stop = lambda: False,
    paused: Stop = lambda: False,
) -> None:
    """Answer every pending instance of ``conditions`` (all if empty), until there is none or ``stop`` says so.

    While ``paused()`` nothing more is asked; what is under way then is answered and committed first.

    ``only`` those of these ordinals; ``width`` at a time, if that is less than the backend's capacity; ``under_way`` is told
    what is. When it stops, what has finished is committed and what has not is cancelled, to be asked again on resume.
    """
    waiting = adjacent(_requests(store.pending(conditions, only=only), protocol))
    again: deque[Asked] = deque()  # instances whose protocol has another step
    asked: dict[str, tuple[PendingInstance, Request]] = {}
    finished = GroupCommit(store.commit)
    exhausted = False
    try:
        while not stop():
            new: list[Request] = []
            holding = paused()
            if holding and not asked:
                finished.commit()
                time.sleep(PAUSE_POLL_SECONDS)
                continue
            while not holding and len(asked) < min(backend.capacity, width or backend.capacity) and not exhausted:
                found = again.popleft() if again else next(waiting, None)
                if found is None:
                    exhausted = True
                    break
                pending, request = found
                if request.step:  # what it rests on is durable first, so that a kill between two steps repeats neither
                    finished.commit()
                asked[request.id] = found
                new.append(request)
            if new and under_way is not None:
                under_way.note(asked.values())
            for request in new:
                backend.submit(request)
            if not asked:
                break
            for generation in backend.step():
                pending, request = asked.pop(generation.request_id)
                so_far = (*pending.generations, generation)
                more = None if generation.finish_reason == "error" else protocol.next(pending.instance, so_far)
                finished.add(_answer(store, pending, request, generation, more is None, judges, benchmark))
                if more is not None:
                    again.append((PendingInstance(pending.ordinal, pending.instance, so_far), more))
                    exhausted = False
            if only is not None and width == 1:
                finished.commit()  # the next one may be what this process dies of
            else:
                finished.commit_if_due()
    except (BudgetError, ModelError):  # nothing more can be asked; what was answered is kept
        finished.commit()
        raise
    finally:
        for request_id in asked:
            backend.cancel(request_id)
    finished.commit()
    if any(benchmark.basis(condition) for condition in benchmark.conditions):
        for judge in judges:  # some answers came before the one they are judged by
            judge_pending(store, judge, benchmark, stop=stop)


def first_requests(
    store: RunStore, protocol: Protocol, conditions: Sequence[str], count: int, *, only: Sequence[int] | None = None
) -> list[Asked]:
    """The first ``count`` requests that :func:`answer_pending` would make now; ``only`` of these ordinals."""
    return list(islice(adjacent(_requests(store.pending(conditions, only=only), protocol)), count))


def _requests(waiting: Iterable[PendingInstance], protocol: Protocol) -> Iterator[Asked]:
    for pending in waiting:
        request = protocol.next(pending.instance, pending.generations)
        if request is None:
            raise RuntimeError(f"{pending.instance.id} is pending, but its protocol asks nothing of it")
        yield pending, request


def judge_pending(store: RunStore, judge: FunctionJudge, benchmark: Benchmark, *, stop: Stop = lambda: False) -> int:
    """Judge every answer that ``judge`` has not judged; returns how many it did."""
    verdicts = GroupCommit(store.add_verdicts)
    count = 0
    for generation, record in store.unjudged(judge.id):
        if stop():
            break
        verdict = verdict_of(judge, record, benchmark)
        condition = record.instance.condition
        verdicts.add((generation, condition, verdict, _is_correct(benchmark, condition, verdict)))
        verdicts.commit_if_due()
        count += 1
    verdicts.commit()
    return count


def verdict_of(judge: FunctionJudge, record: Record, benchmark: Benchmark) -> Verdict:
    """The judge's verdict; a judge that raises or makes up a label has failed on this answer, and the run goes on."""
    try:
        verdict = judge.judge(record)
    except Exception as error:
        return Verdict(judge.id, "judge-failed", reason=f"{type(error).__name__}: {error}")
    if verdict.status == "labelled" and verdict.label not in benchmark.labels:
        return Verdict(judge.id, "judge-failed", reason=f"unknown label {verdict.label!r}", raw=verdict.raw)
    return verdict


def _answer(
    store: RunStore,
    pending: PendingInstance,
    request: Request,
    generation: Generation,
    last: bool,
    judges: Sequence[FunctionJudge],
    benchmark: Benchmark,
) -> NewAnswer:
    verdicts: tuple[Verdict, ...] = ()
    condition = pending.instance.condition
    if last and generation.finish_reason != "error":
        ready, basis = store.basis_of(pending.ordinal) if benchmark.basis(condition) else (True, None)
        record = Record(pending.instance, (*pending.generations, generation), basis=basis)
        verdicts = tuple(verdict_of(judge, record, benchmark) for judge in judges) if ready else ()
    return NewAnswer(
        ordinal=pending.ordinal,
        condition=condition,
        step=request.step,
        request_digest=request.digest,
        generation=generation,
        last=last,
        verdicts=verdicts,
        correct=tuple(_is_correct(benchmark, condition, verdict) for verdict in verdicts),
    )


def _is_correct(benchmark: Benchmark, condition: str, verdict: Verdict) -> bool:
    return verdict.label is not None and benchmark.correct(condition, verdict.label)
