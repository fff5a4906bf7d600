"""The engine's loop: whatever the order of answers and wherever it is stopped, each step is answered once."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.answer_loop import AnswerLoop
from app.engine.group_commit import GROUP_SIZE
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from benchmarks.protocols.protocols import DirectProtocol
from benchmarks.varied_names import in_cell
from benchmarks.vocabulary import Decoding, Generation, Instance, Message, Record, Request, Text, Verdict
from judges.base import FunctionJudge
from tests.app.store.test_run_store import META
from tests.support.toy import EvenJudge, Scripted, Toy, TwoSteps, toy_instances


def stop_after(looks: int | None) -> Callable[[], bool]:
    counter = itertools.count()
    return lambda: looks is not None and next(counter) >= looks


def run_to_the_end(
    folder: Path, count: int, capacity: int, seed: int, stops: list[int]
) -> tuple[list[Record], list[str]]:
    """Answer all, stopped after so many looks at the stop flag, reopening the store each time; the calls made."""
    RunStore.create(folder, META, toy_instances(count)).close()
    calls: list[str] = []
    for looks in [*stops, None]:
        with RunStore.open(folder) as store:
            store.use_engine({"engine": "scripted"})
            backend = Scripted(capacity, seed)
            AnswerLoop(store, backend, TwoSteps(), [EvenJudge()], Toy(), stop=stop_after(looks)).run()
            calls += backend.calls
            cancelled = len(backend.cancelled)
            assert cancelled <= capacity
    with RunStore.open(folder) as store:
        return list(store.records()), calls


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(1, 30),
    capacity=st.integers(1, 9),
    seed=st.integers(0, 1000),
    stops=st.lists(st.integers(0, 20), max_size=5),
)
def test_stopped_anywhere_the_answers_are_those_of_an_undisturbed_run(
    count: int, capacity: int, seed: int, stops: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as disturbed, tempfile.TemporaryDirectory() as quiet:
        records, calls = run_to_the_end(Path(disturbed), count, capacity, seed, stops)
        expected, _ = run_to_the_end(Path(quiet), count, 1, 0, [])
    assert records == expected
    assert [len(record.generations) for record in records] == [2] * count
    # What is asked again is at most what was in flight at each stop.
    assert len(calls) <= 2 * count + capacity * len(stops)


def test_no_more_than_a_group_waits_for_its_commit(tmp_path: Path) -> None:
    class SlowDisk(RunStore):
        def commit(self, answers: Sequence[NewAnswer], values: Mapping[str, Any] | None = None) -> None:
            time.sleep(0.02)
            super().commit(answers, values)

    store = SlowDisk.create(tmp_path, META, toy_instances(500))
    store.use_engine({"engine": "scripted"})
    backend = Scripted(capacity=8)
    waiting = []

    def stop() -> bool:
        answered = len(backend.calls) - len(backend._waiting)
        (kept,) = store._db.execute("SELECT count(*) FROM generation").fetchone()
        waiting.append(answered - kept)
        return False

    AnswerLoop(store, backend, TwoSteps(), [], Toy(), stop=stop).run()
    assert 8 < max(waiting) <= GROUP_SIZE + backend.capacity


def test_a_second_step_is_asked_only_when_the_first_is_durable(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, META, toy_instances(30))
    store.use_engine({"engine": "scripted"})
    kept: list[int] = []

    class Looking(Scripted):
        def submit(self, request: Request) -> None:
            if request.step:
                with RunStore.read(tmp_path) as read:
                    kept.append(len([r for r in read.records(only=request.instance_id) if r.generations]))
            super().submit(request)

    AnswerLoop(store, Looking(capacity=3), TwoSteps(), [], Toy()).run()
    assert kept == [1] * 30


def test_only_the_named_conditions_are_answered(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, META, toy_instances(20))
    store.use_engine({"engine": "scripted"})
    AnswerLoop(store, Scripted(), TwoSteps(), [], Toy(), conditions=["twisted"]).run()
    assert [(p.condition, p.done) for p in store.progress()] == [("plain", 0), ("twisted", 10)]


def test_only_the_named_instances_are_answered_and_no_more_at_once_than_told(tmp_path: Path) -> None:
    class Crowded(Scripted):
        most = 0

        def submit(self, request: Request) -> None:
            super().submit(request)
            self.most = max(self.most, len(self._waiting))

    store = RunStore.create(tmp_path, META, toy_instances(400))
    store.use_engine({"engine": "scripted"})
    backend = Crowded(capacity=8)
    chosen = list(range(300, 20, -2))
    AnswerLoop(store, backend, TwoSteps(), [], Toy(), only=chosen, width=3).run()
    assert backend.most == 3
    answered = {record.instance.id for record in store.records() if record.generations}
    assert answered == {toy_instances(400)[ordinal].id for ordinal in chosen}
    AnswerLoop(store, backend, TwoSteps(), [], Toy(), only=[], width=3).run()
    assert sum(p.done for p in store.progress()) == len(chosen)


class Inventive(FunctionJudge):
    """A judge whose labels no benchmark has."""

    name = "inventive"
    version = "1"
    description = "makes labels up"

    def judge(self, record: Record) -> Verdict:
        return Verdict(self.id, "labelled", "MAYBE", raw="MAYBE!")


def test_a_label_that_the_benchmark_does_not_have_is_a_failure_of_the_judge(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, META, toy_instances(4))
    store.use_engine({"engine": "scripted"})
    AnswerLoop(store, Scripted(), TwoSteps(), [Inventive()], Toy()).run()
    for record in store.records():
        verdict = record.verdicts["inventive@1"]
        assert (verdict.status, verdict.label, verdict.raw) == ("judge-failed", None, "MAYBE!")
        assert "unknown label 'MAYBE'" in verdict.reason
    assert [p.judged["inventive@1"].failed for p in store.progress()] == [2, 2]


class SameAgain(DirectProtocol):
    """Asks the same of every two instances."""

    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        request = super().next(instance, generations)
        if request is None:
            return None
        number = int(instance.question.split()[1].rstrip("?"))
        return replace(request, messages=(Message("user", (Text(f"number {number // 2}?"),)),))


def repeated(count: int) -> list[Instance]:
    """Return instances as they stand in a varied build."""
    return [replace(instance, group=in_cell(instance.group, 1)) for instance in toy_instances(count)]


@pytest.mark.parametrize(
    ("instances", "temperature", "calls"),
    [(repeated(20), 0.0, 10), (repeated(20), 0.7, 20), (toy_instances(20), 0.0, 20)],
    ids=["varied", "sampled", "not varied"],
)
@pytest.mark.parametrize("capacity", [1, 3, 20])
def test_equal_greedy_requests_of_a_varied_build_are_asked_once(
    tmp_path: Path, instances: list[Instance], temperature: float, calls: int, capacity: int
) -> None:
    RunStore.create(tmp_path, META, instances).close()
    with RunStore.open(tmp_path) as store:
        store.use_engine({"engine": "scripted"})
        backend = Scripted(capacity)
        AnswerLoop(store, backend, SameAgain(Decoding(temperature=temperature)), [EvenJudge()], Toy()).run()
        answers = [record.answer for record in store.records()]
    assert len(backend.calls) == calls
    assert all(answer is not None for answer in answers)
    assert len({answer.text for answer in answers if answer is not None}) == 10
    assert sum(answer.calls for answer in answers if answer is not None) == calls


def test_after_an_error_the_equal_requests_are_asked_themselves(tmp_path: Path) -> None:
    instances = repeated(4)
    RunStore.create(tmp_path, META, instances).close()
    with RunStore.open(tmp_path) as store:
        store.use_engine({"engine": "scripted"})
        backend = Scripted(4, failing=frozenset({f"{instances[0].id}#0"}))
        AnswerLoop(store, backend, SameAgain(Decoding()), [EvenJudge()], Toy()).run()
        reasons = [record.answer.finish_reason for record in store.records() if record.answer is not None]
    assert reasons.count("error") == 1
    assert len(reasons) == 4
    assert len(backend.calls) == 3


WRONG: tuple[dict[str, Any], ...] = (
    {"text": None},
    {"finish_reason": "eos"},
    {"prompt_tokens": numpy.int64(3)},
    {"completion_tokens": -1},
    {"peak_memory": 1.5},
    {"calls": None},
    {"decode_s": -0.1},
    {"prefill_s": float("inf")},
    {"tokens": (-1,)},
    {"tokens": None},
    {"scores": (float("nan"),)},
    {"finish_reason": "error", "error": ValueError("x")},
)


@pytest.mark.parametrize("change", WRONG, ids=str)
def test_an_answer_that_cannot_be_stored_is_an_error_and_damages_nothing(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    class Foreign(Scripted):
        """An engine of another package."""

        def _answer(self, request: Request) -> Generation:
            return replace(super()._answer(request), **change)

    with RunStore.create(tmp_path, META, toy_instances(2)) as store:
        store.use_engine({"engine": "scripted"})
        AnswerLoop(store, Foreign(), TwoSteps(), [EvenJudge()], Toy()).run()
    with RunStore.read(tmp_path) as store:
        reasons = [[answer.finish_reason for answer in record.generations] for record in store.records()]
        assert sum(condition.errors for condition in store.progress()) == 2
    assert reasons == [["error"]] * 2
