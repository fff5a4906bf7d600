"""Judging with a model: keeps its engine busy with unjudged answers, and commits its verdicts in groups."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from app.engine.group_commit import GroupCommit
from app.engine.plugin_result_checks import usable_answer
from app.engine.run_control import is_paused
from app.run_spec import RunSpec, parse
from app.store.run_facts import is_judged
from app.store.run_store import RunStore
from benchmarks.errors import RashomonError, SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Record, Request, Verdict
from judges.judge_registry import find_judges
from judges.rubric_judge import RubricJudge
from mlx_backends.base import Backend
from mlx_backends.core.metal_faults import DeviceLostError

_POLL_SECONDS = 0.2
_VERSIONS = ("versions", "device")
_LOST = "judge-device-lost"
"""The key of the answers, each with its judge, on which a worker has lost the GPU."""


@dataclass(slots=True)
class _Case:
    """An answer to be judged: its row, and the judge's replies so far, none of which could be parsed."""

    generation: int
    record: Record
    replies: tuple[Generation, ...] = ()


def judge_answers(
    store: RunStore,
    judge: RubricJudge,
    backend: Backend,
    *,
    width: int | None = None,
    more: Callable[[], bool] = lambda: False,
    stop: Callable[[], bool] = lambda: False,
    paused: Callable[[], bool] = lambda: False,
) -> None:
    """Judge every unjudged answer, ``width`` at a time; while ``more()``, wait for further answers.

    Verdicts are committed as they come. Once ``stop()``, requests in flight are cancelled, to be repeated another time. While
    ``paused()``, no new request is submitted. Raises BudgetError at the budget's limit, and DeviceLostError where the GPU fails
    repeatedly; all verdicts until then are kept. A request on which two workers lost the GPU is a failure of the judge.
    """
    _ModelJudging(store, judge, backend, width, more, paused).run(stop)


class _ModelJudging:
    """Judging of the answers of one run by a model; the arguments are those of :func:`judge_answers`."""

    def __init__(
        self,
        store: RunStore,
        judge: RubricJudge,
        backend: Backend,
        width: int | None,
        more: Callable[[], bool],
        paused: Callable[[], bool],
    ) -> None:
        self._store = store
        self._judge = judge
        self._backend = backend
        self._width = width
        self._paused = paused
        unsaved: set[int] = set()
        self._waiting = _cases(store, judge, more, unsaved)
        self._exhausted = False
        self._in_flight: dict[str, _Case] = {}
        self._verdicts = GroupCommit(partial(_save, store, unsaved))

    def run(self, stop: Callable[[], bool]) -> None:
        """Judge until no answer is left, or until ``stop()``."""
        try:
            while not stop() and not (self._exhausted and not self._in_flight):
                self._submit()
                if not self._in_flight and not self._exhausted:
                    time.sleep(_POLL_SECONDS)
                for reply in self._backend.step():
                    case = self._in_flight.pop(reply.request_id)
                    case = replace(case, replies=(*case.replies, usable_answer(reply)))
                    self._conclude_or_ask(case, self._judge.verdict(case.replies))
                self._verdicts.commit_if_due()
        except DeviceLostError as error:
            self._note_lost(error)
            raise
        finally:
            for request_id in self._in_flight:
                self._backend.cancel(request_id)
            self._verdicts.commit()
            save_remarks(self._store, self._backend)

    def _submit(self) -> None:
        """Submit requests up to the backend's capacity, which shrinks where memory runs short."""
        capacity = min(self._backend.capacity, self._width or self._backend.capacity)
        while not self._exhausted and len(self._in_flight) < capacity and not self._paused():
            try:
                case = next(self._waiting)
            except StopIteration:
                self._exhausted = True
                break
            if case is None:
                break
            self._conclude_or_ask(case, self._judge.verdict_without_model(case.record))

    def _conclude_or_ask(self, case: _Case, verdict: Verdict | None) -> None:
        """Take the verdict on a case; without one, ask the model."""
        if verdict is not None:
            self._verdicts.add((case.generation, case.record.instance.condition, verdict))
            return
        request = self._judge.request(f"answer {case.generation}", case.record, case.replies)
        self._in_flight[request.id] = case
        self._backend.submit(request)

    def _note_lost(self, error: DeviceLostError) -> None:
        """Record the request on which the GPU was lost; the second time, the judge has failed on it."""
        case = self._in_flight.get(error.request_id or "")
        if case is None:
            return
        key = [self._judge.id, case.generation]
        if key in self._store.meta(_LOST, []):
            verdict = Verdict(self._judge.id, "judge-failed", reason=f"the judge gave no reply: {error}")
            self._conclude_or_ask(case, verdict)
        else:
            self._store.change_meta(_LOST, lambda known: [*(known or []), key])


def first_judge_requests(store: RunStore, judge: RubricJudge, count: int) -> list[Request]:
    """Return the first ``count`` requests that :func:`judge_answers` would submit now."""
    waiting = islice(store.unjudged(judge), count)
    return [
        judge.request(f"answer {row}", record, ())
        for row, record in waiting
        if judge.verdict_without_model(record) is None
    ]


def _cases(store: RunStore, judge: RubricJudge, more: Callable[[], bool], unsaved: set[int]) -> Iterator[_Case | None]:
    """Yield the answers to be judged; None if there is none now, but may be later.

    An answer that came before the sibling it is judged by is passed over at first, and yielded at the end. Each answer is added
    to ``unsaved``; the caller removes it once its verdict is stored.
    """
    after = -1
    while True:
        last = not more()
        yielded = frozenset(unsaved) if last else frozenset()  # the last pass comes to these again
        for generation, record in store.unjudged(judge, after=-1 if last else after):
            after = max(after, generation)
            if generation not in yielded:
                unsaved.add(generation)
                yield _Case(generation, record)
        if last:
            return
        yield None


def _save(store: RunStore, unsaved: set[int], verdicts: Sequence[tuple[int, str, Verdict]]) -> None:
    store.add_verdicts(verdicts)
    unsaved.difference_update(generation for generation, *_ in verdicts)


class WorkLeft(NamedTuple):
    """The numbers of answers and of verdicts that a run lacks; an answer that is missing is not counted among the verdicts."""

    answers: int
    verdicts: int


def work_left(store: RunStore, spec: RunSpec) -> WorkLeft:
    """Return what the run in ``store`` lacks of its ``spec``."""
    benchmark = get_benchmark(spec.benchmark)
    judges = find_judges(spec.judge, benchmark, spec.undecided_by)
    return WorkLeft(
        sum(p.total - p.done for p in store.progress()),
        sum(store.unjudged_count(judge) for judge in judges),
    )


def models_needed(store: RunStore, spec: RunSpec, conditions: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the model, if answers are missing, and the judges, if anything is missing; empty for a finished run."""
    if next(store.pending(conditions), None) is not None:
        return (spec.model, *spec.judge)
    return spec.judge if work_left(store, spec).verdicts else ()


def is_unjudged(store: RunStore) -> bool:
    """Return whether a run is answered in full, but its own judges are not done."""
    spec = store.meta("spec")
    if next(store.pending(), None) is not None or is_judged(spec, store.progress()):
        return False
    with suppress(RashomonError):  # a model that judges may be gone
        return bool(models_needed(store, parse(RunSpec, spec, str(store.folder))))
    return True


def register_judge(store: RunStore, judge: RubricJudge, *, accept_engine: bool = False) -> None:
    """Record the judge's identity in a run. Raises SpecError if a different judge has labelled it under the same id."""
    identities: dict[str, Any] = store.meta("judges", {})
    identity = judge.identity()
    recorded = identities.get(judge.id, identity)
    differing = [
        f"{key}: was {recorded.get(key)!r}, is {value!r}"
        for key, value in identity.items()
        if recorded.get(key) != value
    ]
    if differing and not (accept_engine and all(difference.startswith(_VERSIONS) for difference in differing)):
        advice = "add --accept-engine to continue anyway" if not accept_engine else "judge with the former settings"
        raise SpecError(f"{judge.id} has changed since it began to judge this run: {'; '.join(differing)}; {advice}.")
    if judge.id not in identities:
        store.change_meta("judges", lambda known: {**(known or {}), judge.id: identity})


def save_remarks(store: RunStore, backend: Backend) -> None:
    """Store the backend's remarks, which readers of the results must see, with the run."""
    if backend.remarks:
        store.change_meta("remarks", lambda known: list(dict.fromkeys([*(known or []), *backend.remarks])))


class ConcurrentJudging:
    """Judges with a remote engine, each working in a thread of its own while answers are still being generated.

    A context manager around the answering. Leaving the block waits until every answer is judged or, if the answering failed,
    only for the requests in flight. An error of a judge does not end the answering: it is raised at the end of the block.
    """

    def __init__(
        self,
        folder: Path,
        judges: Sequence[tuple[RubricJudge, Callable[[], Backend]]],
        stop: Callable[[], bool],
        *,
        retry_failed: bool = False,
    ) -> None:
        """Set up threads for ``judges``, given with the loaders of their engines.

        With ``retry_failed``, answers that a judge has failed on are judged again.
        """
        self._answering = True
        self._broken = False
        self._asked_to_stop = stop
        self._retry_failed = retry_failed
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._judge, args=(folder, judge, load), name=judge.id, daemon=True)
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

    def _judge(self, folder: Path, judge: RubricJudge, load: Callable[[], Backend]) -> None:
        backend: Backend | None = None
        try:
            with RunStore.open(folder) as store:
                if self._retry_failed:
                    store.retract(judge.id, status="judge-failed")
                # A provider's library takes half a second to import, which must not delay the model's loading.
                while self._more() and next(store.unjudged(judge), None) is None:
                    time.sleep(_POLL_SECONDS)
                if self._stop():
                    return
                backend = load()
                paused = partial(is_paused, folder)
                judge_answers(store, judge, backend, more=self._more, stop=self._stop, paused=paused)
        except BaseException as error:
            self._errors.append(error)
        finally:
            if backend is not None:
                backend.close()
