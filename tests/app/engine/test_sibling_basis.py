"""Answers that are judged by a sibling's answer: they wait for it, are judged once, and again when it was asked again."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.answer_loop import AnswerLoop, judge_pending
from app.engine.model_judging import ConcurrentJudging, judge_answers
from app.store.run_store import RunStore
from benchmarks.protocols.protocols import DirectProtocol
from benchmarks.rubric import Rubric
from benchmarks.vocabulary import Choice, Decoding, Generation, Instance, Record, Verdict
from judges.base import FunctionJudge
from judges.rubric_judge import RubricJudge
from tests.app.engine.test_answer_loop import stop_after
from tests.app.engine.test_model_judging import INFO, Speaker
from tests.app.store.test_run_store import META
from tests.support.toy import Scripted, Toy, TwoSteps, toy_instances
from tests.support.trust import seal


class Paired(Toy):
    """A twisted answer is judged by the plain one of its group."""

    def basis(self, condition: str) -> str | None:
        return "plain" if condition == "twisted" else None


class Differs(FunctionJudge):
    """YES where a twisted answer is not the plain one; it counts how often it was asked about each."""

    name = "differs"
    version = "1"
    description = "unlike its basis"
    benchmarks = ("toy",)

    def __init__(self) -> None:
        self.asked: list[str] = []

    def judge(self, record: Record) -> Verdict:
        self.asked.append(record.instance.id)
        if record.instance.condition == "plain":
            assert record.basis is None
            return Verdict(self.id, "labelled", "NO")
        if record.basis is None or record.basis.finish_reason == "error":
            return Verdict(self.id, "unparsed", reason="no basis" if record.basis is None else "basis in error")
        assert record.answer is not None
        assert record.basis.request_id == record.instance.id.replace("twisted", "plain") + "#0"
        return Verdict(
            self.id, "labelled", "NO" if record.answer.text == record.basis.text else "YES", record.basis.text
        )


class PairedRubric(Rubric):
    name = "paired"
    version = "1"
    labels = ("YES", "NO")
    form = Choice(labels)
    conditions = ("twisted",)

    def prompt(self, record: Record) -> str:
        assert record.answer is not None
        assert record.basis is not None
        return f"{record.basis.text} {record.answer.text}"

    def label_by_rule(self, record: Record) -> tuple[str | None, str] | None:
        return (None, "no basis") if record.basis is None or record.basis.finish_reason == "error" else None


MODEL = RubricJudge("openai:gpt", INFO, PairedRubric())


def twisted_first(count: int) -> list[Instance]:
    """The instances with each group's basis after the answer that needs it."""
    result = toy_instances(count)
    return [result[i + 1 - 2 * (i % 2)] for i in range(count)]


def plan(folder: Path, instances: Sequence[Instance]) -> RunStore:
    store = RunStore.create(folder, META, instances, Paired().basis)
    store.use_engine({"engine": "scripted"})
    return store


def by_id(store: RunStore) -> dict[str, Record]:
    return {record.instance.id: record for record in store.records()}


@settings(max_examples=25, deadline=None)
@given(
    groups=st.integers(1, 15),
    capacity=st.integers(1, 9),
    seed=st.integers(0, 1000),
    stops=st.lists(st.integers(0, 15), max_size=4),
    backwards=st.booleans(),
)
def test_stopped_anywhere_and_in_any_order_every_answer_is_judged_once_by_its_sibling(
    groups: int, capacity: int, seed: int, stops: list[int], backwards: bool
) -> None:
    judge = Differs()
    with tempfile.TemporaryDirectory() as name:
        plan(Path(name), twisted_first(2 * groups) if backwards else toy_instances(2 * groups)).close()
        for looks in [*stops, None]:
            with RunStore.open(Path(name)) as store:
                store.use_engine({})
                stop = stop_after(looks)
                judge_pending(store, judge, Paired(), stop=stop)
                AnswerLoop(
                    store, Scripted(capacity, seed), DirectProtocol(Decoding()), [judge], Paired(), stop=stop
                ).run()
        with RunStore.read(Path(name)) as store:
            records = by_id(store)
            counted = sum(p.judged[judge.id].labelled for p in store.progress())
            calls = store.answer_usage()[0]
    assert sorted(judge.asked) == sorted(records)
    assert counted == calls == 2 * groups
    for key, record in records.items():
        verdict = record.verdicts[judge.id]
        if record.instance.condition == "twisted":
            plain = records[key.replace("twisted", "plain")]
            assert record.basis == plain.answer
            assert record.answer is not None
            assert plain.answer is not None
            assert verdict.reason == plain.answer.text
            assert verdict.label == ("NO" if record.answer.text == plain.answer.text else "YES")


def test_an_answer_whose_basis_is_not_there_yet_stays_pending(tmp_path: Path) -> None:
    judge = Differs()
    with plan(tmp_path, toy_instances(6)) as store:
        AnswerLoop(store, Scripted(2), DirectProtocol(Decoding()), [judge], Paired(), conditions=["twisted"]).run()
        assert judge.asked == []
        assert {r.outcome(judge.id) for r in by_id(store).values()} == {"pending"}
        assert list(store.unjudged(judge)) == []
        judge_answers(store, MODEL, asked := Speaker(lambda *_: "YES"))
        assert asked.asked == []
        AnswerLoop(store, Scripted(2), DirectProtocol(Decoding()), [judge], Paired()).run()
        assert {r.outcome(judge.id) for r in by_id(store).values()} == {"labelled"}
        judge_answers(store, MODEL, asked)
        assert len(asked.asked) == 3
        assert len(list(store.records())) == 6


def test_a_run_that_does_not_ask_the_basis_says_so_in_its_verdicts(tmp_path: Path) -> None:
    judge = Differs()
    twisted = [toy_instance for toy_instance in toy_instances(6) if toy_instance.condition == "twisted"]
    with plan(tmp_path, twisted) as store:
        AnswerLoop(store, Scripted(2), DirectProtocol(Decoding()), [judge], Paired()).run()
        assert {r.verdicts[judge.id].reason for r in store.records()} == {"no basis"}
        judge_answers(store, MODEL, asked := Speaker(lambda *_: "YES"))
        assert asked.asked == []
        assert {r.verdicts[MODEL.id].status for r in store.records()} == {"unparsed"}


def test_a_basis_that_failed_is_told_and_judged_anew_when_it_was_asked_again(tmp_path: Path) -> None:
    judge = Differs()
    failing = frozenset({"example-1/plain#0"})
    with plan(tmp_path, toy_instances(6)) as store:
        AnswerLoop(store, Scripted(1, failing=failing), DirectProtocol(Decoding()), [judge], Paired()).run()
        judge_answers(store, MODEL, Speaker(lambda *_: "NO"))
        twisted = by_id(store)["example-1/twisted"]
        assert twisted.verdicts[judge.id] == Verdict(judge.id, "unparsed", reason="basis in error")
        assert twisted.verdicts[MODEL.id].reason == "no basis"
        answered = store.answer_usage()[0]

        assert store.repeat(errors_only=True) == 1
        assert by_id(store)["example-1/twisted"].verdicts == {}
        (twisted_progress,) = [p for p in store.progress() if p.condition == "twisted"]
        assert twisted_progress.judged[judge.id].unparsed == 0
        assert twisted_progress.judged[judge.id].labelled == 2
        AnswerLoop(store, Scripted(1), DirectProtocol(Decoding()), [judge], Paired()).run()
        judge_answers(store, MODEL, asked := Speaker(lambda *_: "NO"))
        again = by_id(store)["example-1/twisted"]
        assert again.verdicts[judge.id].status == again.verdicts[MODEL.id].status == "labelled"
        assert again.answer == twisted.answer
        assert store.answer_usage()[0] == answered + 1, "the judged answer itself is not asked again"
        assert len(asked.asked) == 1


def test_repeating_the_basis_sets_aside_what_was_said_by_it_and_nothing_else(tmp_path: Path) -> None:
    judge = Differs()
    with plan(tmp_path, toy_instances(8)) as store:
        AnswerLoop(store, Scripted(3), DirectProtocol(Decoding()), [judge], Paired()).run()
        assert store.repeat(["plain"]) == 4
        records = by_id(store)
        assert all(record.verdicts == {} for record in records.values())
        assert {r.instance.condition for r in records.values() if r.answer} == {"twisted"}
        assert store.repeat(["twisted"]) == 4
        AnswerLoop(store, Scripted(3), DirectProtocol(Decoding()), [judge], Paired()).run()
        assert store.repeat(["twisted"]) == 4
        plain = [r for r in by_id(store).values() if r.instance.condition == "plain"]
        assert all(record.verdicts for record in plain)


def test_a_judge_elsewhere_finds_the_answers_that_came_before_their_basis(tmp_path: Path) -> None:
    class OneByOne(Scripted):
        """Finishes what was asked last first, so that no basis is there before its answer."""

        def step(self) -> Sequence[Generation]:
            last = list(self._waiting)[-1]
            return [self._answer(self._waiting.pop(last))]

    plan(tmp_path, twisted_first(30)).close()
    chance = random.Random(3)
    speaker = Speaker(lambda prompt, asked: chance.choice(["YES", "NO"]), capacity=2)
    with RunStore.open(tmp_path) as store:
        store.use_engine({})
        with ConcurrentJudging(tmp_path, [(MODEL, lambda: speaker)], lambda: False):
            AnswerLoop(store, OneByOne(1), DirectProtocol(Decoding()), [], Paired()).run()
    with RunStore.read(tmp_path) as store:
        twisted = [record for record in store.records() if record.instance.condition == "twisted"]
        assert {record.outcome(MODEL.id) for record in twisted} == {"labelled"}
    assert len(speaker.asked) == len({request.id for request in speaker.asked}) == 15


def test_the_basis_is_the_last_steps_answer_once_the_sibling_is_done(tmp_path: Path) -> None:
    with plan(tmp_path, toy_instances(2)) as store:
        assert store.basis_of(0) == (True, None)
        for looks in (2, None):
            AnswerLoop(store, Scripted(1), TwoSteps(), [], Paired(), conditions=["plain"], stop=stop_after(looks)).run()
            steps = by_id(store)["example-0/plain"].generations
            assert store.basis_of(1) == ((True, steps[-1]) if len(steps) == 2 else (False, None))
        assert len(steps) == 2
        assert by_id(store)["example-0/twisted"].basis == steps[-1]


@settings(max_examples=10, deadline=None)
@given(capacity=st.integers(1, 5), stops=st.lists(st.integers(0, 12), min_size=1, max_size=3))
def test_a_model_that_is_stopped_anywhere_judges_every_answer_that_has_a_basis_once(
    capacity: int, stops: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as name, plan(Path(name), twisted_first(20)) as store:
        AnswerLoop(store, Scripted(3), DirectProtocol(Decoding()), [], Paired(), conditions=["twisted"]).run()
        bases = iter([10, None])
        for looks in [*stops, None]:
            AnswerLoop(
                store, Scripted(1), DirectProtocol(Decoding()), [], Paired(), stop=stop_after(next(bases, None))
            ).run()
            judge_answers(store, MODEL, Speaker(lambda *_: "NO", capacity), stop=stop_after(looks))
        verdicts = [r.verdicts[MODEL.id] for r in store.records() if r.instance.condition == "twisted"]
        assert len(verdicts) == sum(p.judged[MODEL.id].labelled for p in store.progress() if p.judged) == 10


def test_a_run_of_before_has_no_bases_and_is_read_and_judged_as_ever(tmp_path: Path) -> None:
    import sqlite3

    from app.store.database_schema import MIGRATIONS
    from app.store.run_database import DATABASE

    connection = sqlite3.connect(tmp_path / DATABASE, isolation_level=None)
    for migration in MIGRATIONS[:2]:
        for statement in migration.split(";\n"):
            connection.execute(statement)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with RunStore.read(tmp_path) as store:
        assert list(store.records()) == []
    seal(tmp_path)
    with RunStore.open(tmp_path) as store:
        assert list(store.records()) == []
        ((version,),) = store._rows("PRAGMA user_version")
        assert version == len(MIGRATIONS)


@pytest.mark.parametrize("wanted", [["plain"], ["twisted"], []])
def test_any_conditions_can_be_judged_later(tmp_path: Path, wanted: list[str]) -> None:
    judge = Differs()
    with plan(tmp_path, toy_instances(6)) as store:
        AnswerLoop(store, Scripted(2), DirectProtocol(Decoding()), [], Paired(), conditions=wanted).run()
        judged = judge_pending(store, judge, Paired())
        assert judged == {"plain": 3, "twisted": 0}.get(wanted[0] if wanted else "", 6)
