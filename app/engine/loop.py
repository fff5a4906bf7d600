"""The engine's loop: keep the backend fed, make answers durable in groups, judge what a function can judge at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from app.engine.groups import Group
from app.store.rows import Answer, Pending
from app.store.run import RunStore
from benchmarks.base import Benchmark, Generation, Protocol, Record, Request, Verdict
from benchmarks.errors import BudgetError, ModelError
from judges.base import FunctionJudge
from mlx_backends.base import Backend

Stop = Callable[[], bool]


def answer_pending(
    store: RunStore,
    backend: Backend,
    protocol: Protocol,
    judges: Sequence[FunctionJudge],
    benchmark: Benchmark,
    *,
    conditions: Sequence[str] = (),
    stop: Stop = lambda: False,
) -> None:
    """Answer every pending instance of ``conditions`` (all if empty), until there is none or ``stop`` says so.

    When it stops, what has finished is committed and what has not is cancelled, to be asked again on resume.
    """
    waiting = store.pending(conditions)
    again: deque[Pending] = deque()  # instances whose protocol has another step
    asked: dict[str, tuple[Pending, Request]] = {}
    finished = Group(store.commit)
    exhausted = False
    try:
        while not stop():
            while len(asked) < backend.capacity and not exhausted:
                pending = again.popleft() if again else next(waiting, None)
                if pending is None:
                    exhausted = True
                    break
                request = protocol.next(pending.instance, pending.generations)
                if request is None:
                    raise RuntimeError(f"{pending.instance.id} is pending, but its protocol asks nothing of it")
                asked[request.id] = (pending, request)
                backend.submit(request)
            if not asked:
                break
            for generation in backend.step():
                pending, request = asked.pop(generation.request_id)
                so_far = (*pending.generations, generation)
                more = generation.finish_reason != "error" and protocol.next(pending.instance, so_far) is not None
                finished.add(_answer(pending, request, generation, not more, judges, benchmark))
                if more:
                    again.append(Pending(pending.ordinal, pending.instance, so_far))
                    exhausted = False
            finished.commit_if_due()
    except (BudgetError, ModelError):  # nothing more can be asked; what was answered is kept
        finished.commit()
        raise
    finally:
        for request_id in asked:
            backend.cancel(request_id)
    finished.commit()


def judge_pending(store: RunStore, judge: FunctionJudge, benchmark: Benchmark, *, stop: Stop = lambda: False) -> int:
    """Judge every answer that ``judge`` has not judged; returns how many it did."""
    verdicts = Group(store.add_verdicts)
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
    pending: Pending,
    request: Request,
    generation: Generation,
    last: bool,
    judges: Sequence[FunctionJudge],
    benchmark: Benchmark,
) -> Answer:
    verdicts: tuple[Verdict, ...] = ()
    if last and generation.finish_reason != "error":
        record = Record(pending.instance, (*pending.generations, generation))
        verdicts = tuple(verdict_of(judge, record, benchmark) for judge in judges)
    condition = pending.instance.condition
    return Answer(
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
