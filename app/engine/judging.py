"""Judging with a model: keep its engine fed with the answers it has not judged, and make its verdicts durable in groups."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from app.engine.group_commit import GroupCommit
from app.engine.workers.run_control import is_paused
from app.store.run import RunStore
from benchmarks.base import Benchmark, Generation, Record, Request, Verdict
from benchmarks.errors import SpecError
from judges.rubric import RubricJudge
from mlx_backends.base import Backend

_POLL_SECONDS = 0.2
_VERSIONS = ("versions", "device")


@dataclass(slots=True)
class _Case:
    """An answer before the judge: its row, and the replies that could not be read."""

    generation: int
    record: Record
    replies: tuple[Generation, ...] = ()


def judge_answers(
    store: RunStore,
    judge: RubricJudge,
    backend: Backend,
    benchmark: Benchmark,
    *,
    width: int | None = None,
    more: Callable[[], bool] = lambda: False,
    stop: Callable[[], bool] = lambda: False,
    paused: Callable[[], bool] = lambda: False,
) -> None:
    """Ask ``judge`` about every answer it has not judged, ``width`` at a time; while ``more()``, wait for further answers.

    Verdicts are committed as they come. When ``stop`` says so, what was asked and not answered is dropped, to be asked again
    another time. While ``paused()`` no further answer is asked about. Raises BudgetError where the ceiling is reached; all
    verdicts until then are kept.
    """
    waiting = _cases(store, judge, more)
    capacity = min(backend.capacity, width or backend.capacity)
    asked: dict[str, _Case] = {}
    verdicts = GroupCommit(store.add_verdicts)
    exhausted = False

    def ask(case: _Case) -> None:
        request = judge.request(f"answer {case.generation}", case.record, case.replies)
        asked[request.id] = case
        backend.submit(request)

    def conclude(case: _Case, verdict: Verdict) -> None:
        condition = case.record.instance.condition
        correct = verdict.label is not None and benchmark.correct(condition, verdict.label)
        verdicts.add((case.generation, condition, verdict, correct))

    try:
        while not stop() and not (exhausted and not asked):
            while not exhausted and len(asked) < capacity and not paused():
                try:
                    case = next(waiting)
                except StopIteration:
                    exhausted = True
                    break
                if case is None:
                    break
                known = judge.unasked(case.record)
                if known is None:
                    ask(case)
                else:
                    conclude(case, known)
            if not asked and not exhausted:
                time.sleep(_POLL_SECONDS)
            for reply in backend.step():
                case = asked.pop(reply.request_id)
                case = replace(case, replies=(*case.replies, reply))
                verdict = judge.verdict(case.replies)
                if verdict is None:
                    ask(case)
                else:
                    conclude(case, verdict)
            verdicts.commit_if_due()
    finally:
        for request_id in asked:
            backend.cancel(request_id)
        verdicts.commit()
        remark(store, backend)


def first_judgements(store: RunStore, judge: RubricJudge, count: int) -> list[Request]:
    """The first ``count`` requests that :func:`judge_answers` would make now."""
    waiting = islice(store.unjudged(judge.id, judge.conditions), count)
    return [judge.request(f"answer {row}", record, ()) for row, record in waiting if judge.unasked(record) is None]


def _cases(store: RunStore, judge: RubricJudge, more: Callable[[], bool]) -> Iterator[_Case | None]:
    """The answers to be judged; None where there is none now and there may be later.

    An answer that came before the sibling it is judged by is passed over, and found at the end.
    """
    after = -1
    given: set[int] = set()
    while True:
        last = not more()
        for generation, record in store.unjudged(judge.id, judge.conditions, after=-1 if last else after):
            after = max(after, generation)
            if generation not in given:
                given.add(generation)
                yield _Case(generation, record)
        if last:
            return
        yield None


def enter(store: RunStore, judge: RubricJudge, *, accept_engine: bool = False) -> None:
    """Note in a run what this judge is. Raises SpecError where another one has labelled under the same id."""
    known: dict[str, Any] = store.meta("judges", {})
    now = judge.identity()
    before = known.get(judge.id, now)
    told = [f"{key}: was {before.get(key)!r}, is {now.get(key)!r}" for key in now if before.get(key) != now.get(key)]
    if told and not (accept_engine and all(one.startswith(_VERSIONS) for one in told)):
        advice = "add --accept-engine to go on all the same" if not accept_engine else "judge with what it was"
        raise SpecError(f"{judge.id} is not what it was when it began to judge this run: {'; '.join(told)}; {advice}.")
    if judge.id not in known:
        store.change_meta("judges", lambda known: {**(known or {}), judge.id: now})


def remark(store: RunStore, backend: Backend) -> None:
    """Keep with a run what whoever reads it must know of how ``backend`` was asked."""
    if backend.remarks:
        store.change_meta("remarks", lambda known: list(dict.fromkeys([*(known or []), *backend.remarks])))


class ConcurrentJudging:
    """Judges that work in threads of their own while answers are still being made: those whose engine is elsewhere.

    Use it as a context manager around the answering. Leaving the block waits until every answer is judged, or, where the
    answering ended in an error, no longer than for what is under way; an error of a judge is kept until then, so that it
    does not end the answering, and raised there.
    """

    def __init__(
        self,
        folder: Path,
        judges: Sequence[tuple[RubricJudge, Callable[[], Backend]]],
        benchmark: Benchmark,
        stop: Callable[[], bool],
        *,
        retry_failed: bool = False,
    ) -> None:
        """``judges`` with what loads the engine of each; ``retry_failed``: what they have failed on is judged again."""
        self._answering = True
        self._broken = False
        self._asked_to_stop = stop
        self._retry_failed = retry_failed
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._judge, args=(folder, judge, load, benchmark), name=judge.id, daemon=True)
            for judge, load in judges
        ]

    def __enter__(self) -> ConcurrentJudging:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._broken = kind is not None
        self._answering = False
        for thread in self._threads:
            thread.join()
        if kind is None and self._errors:
            raise self._errors[0]

    def _stop(self) -> bool:
        return self._broken or self._asked_to_stop()

    def _more(self) -> bool:
        return self._answering and not self._stop()

    def _judge(self, folder: Path, judge: RubricJudge, load: Callable[[], Backend], benchmark: Benchmark) -> None:
        backend: Backend | None = None
        try:
            with RunStore.open(folder) as store:
                if self._retry_failed:
                    store.retract(judge.id, status="judge-failed")
                # A vendor's library takes half a second to import: not while the model is loaded, nor before it answers.
                while self._more() and next(store.unjudged(judge.id, judge.conditions), None) is None:
                    time.sleep(_POLL_SECONDS)
                if self._stop():
                    return
                backend = load()
                paused = partial(is_paused, folder)
                judge_answers(store, judge, backend, benchmark, more=self._more, stop=self._stop, paused=paused)
        except BaseException as error:
            self._errors.append(error)
        finally:
            if backend is not None:
                backend.close()
