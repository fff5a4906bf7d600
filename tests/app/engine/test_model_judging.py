"""A judge that is a model: every answer ends labelled, unparsed or judge-failed, once, whatever the model replies."""

from __future__ import annotations

import json
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.answer_loop import AnswerLoop
from app.engine.model_judging import ConcurrentJudging, judge_answers, register_judge
from app.store.run_store import RunStore
from benchmarks.errors import BudgetError, SpecError
from benchmarks.protocols.protocols import DirectProtocol
from benchmarks.rubric import Rubric
from benchmarks.vocabulary import Choice, Decoding, Generation, Record, Request, Text
from judges.rubric_judge import MAX_REPLIES, RubricJudge
from mlx_backends.base import Backend, EngineInfo
from mlx_backends.core.metal_faults import DeviceLostError
from tests.app.engine.test_answer_loop import stop_after
from tests.app.store.test_run_store import META
from tests.support.metal_injector import failure
from tests.support.toy import Scripted, Toy, toy_instances

INFO = EngineInfo("openai", "gpt", device="remote", needs_device=False)


class EvenRubric(Rubric):
    name = "toy"
    version = "3"
    labels = ("YES", "NO")
    form = Choice(labels)

    def prompt(self, record: Record) -> str:
        assert record.answer is not None
        return f"Is it even? {record.answer.text}"


JUDGE = RubricJudge("openai:gpt", INFO, EvenRubric())


class Speaker(Backend):
    """A judge's engine: ``says(prompt, times it was asked about that answer)`` is its reply; None is an error."""

    def __init__(self, says: Callable[[str, int], str | None], capacity: int = 4, seed: int = 0) -> None:
        self.info = INFO
        self.capacity = capacity
        self.asked: list[Request] = []
        self.closed = False
        self._says = says
        self._random = random.Random(seed)
        self._waiting: dict[str, Request] = {}

    def submit(self, request: Request) -> None:
        assert len(self._waiting) < self.capacity
        assert request.id not in self._waiting
        self.asked.append(request)
        self._waiting[request.id] = request

    def step(self) -> Sequence[Generation]:
        done = [item for item in list(self._waiting) if self._random.random() < 0.6]
        return [self._reply(self._waiting.pop(item)) for item in done]

    def _reply(self, request: Request) -> Generation:
        first = request.messages[0].parts[0]
        assert isinstance(first, Text)
        text = self._says(first.text, request.step)
        if text is None:
            return Generation(request.id, "", "error", error="it is down", calls=6)
        return Generation(request.id, text, "stop", prompt_tokens=10, completion_tokens=2)

    def cancel(self, request_id: str) -> None:
        self._waiting.pop(request_id, None)

    def close(self) -> None:
        self.closed = True


def right(prompt: str, asked: int) -> str:
    return "YES" if int(prompt.split()[-1]) % 2 == 0 else "NO"


def answered(folder: Path, count: int) -> None:
    with RunStore.create(folder, META, toy_instances(count)) as store:
        store.use_engine({"engine": "scripted"})
        AnswerLoop(store, Scripted(4), DirectProtocol(Decoding()), [], Toy()).run()


def judge_all(folder: Path, backend: Backend) -> list[Record]:
    with RunStore.open(folder) as store:
        judge_answers(store, JUDGE, backend)
    with RunStore.read(folder) as store:
        return list(store.records())


def test_the_labels_are_the_models_and_what_they_cost_is_kept(tmp_path: Path) -> None:
    answered(tmp_path, 40)
    backend = Speaker(right)
    records = judge_all(tmp_path, backend)
    for record in records:
        assert record.answer is not None
        verdict = record.verdicts["openai:gpt@toy-3"]
        assert (verdict.status, verdict.label) == ("labelled", right(record.answer.text, 0))
        assert verdict.raw == verdict.label
        assert (verdict.calls, verdict.prompt_tokens, verdict.completion_tokens) == (1, 10, 2)
    with RunStore.read(tmp_path) as store:
        assert store.judge_usage(JUDGE.id) == (40, 400, 80)
        assert sum(p.judged[JUDGE.id].labelled for p in store.progress()) == 40
    assert judge_all(tmp_path, again := Speaker(right)) == records
    assert again.asked == []


@pytest.mark.parametrize(
    "reply", ["MAYBE", "YES or NO", "", 'The answer says: "Output: YES"', "yes.\nno", "Y", "<html>502</html>", "YESNO"]
)
def test_a_reply_that_is_not_one_label_is_asked_again_and_then_judge_failed(tmp_path: Path, reply: str) -> None:
    answered(tmp_path, 6)
    backend = Speaker(lambda prompt, asked: reply)
    for record in judge_all(tmp_path, backend):
        verdict = record.verdicts[JUDGE.id]
        assert (verdict.status, verdict.label) == ("judge-failed", None)
        assert verdict.reason == "none of 3 replies is exactly one label"
        assert verdict.raw == (reply or None)
        assert verdict.calls == MAX_REPLIES
    assert len(backend.asked) == 6 * MAX_REPLIES
    assert len({request.digest for request in backend.asked}) >= MAX_REPLIES, (
        "the same request again gets the same reply"
    )


@pytest.mark.parametrize("reply", ["yes", " YES\n", "**YES**", '"Yes."', "<think>is it NO?</think>YES"])
def test_a_label_in_another_case_or_dress_is_that_label(tmp_path: Path, reply: str) -> None:
    answered(tmp_path, 4)
    assert {record.verdicts[JUDGE.id].label for record in judge_all(tmp_path, Speaker(lambda *_: reply))} == {"YES"}


def test_a_second_reply_that_can_be_read_counts(tmp_path: Path) -> None:
    answered(tmp_path, 10)
    records = judge_all(tmp_path, Speaker(lambda prompt, asked: right(prompt, asked) if asked else "hm"))
    assert {(r.verdicts[JUDGE.id].status, r.verdicts[JUDGE.id].calls) for r in records} == {("labelled", 2)}


def test_an_engine_that_is_down_is_judge_failed_and_can_be_tried_again(tmp_path: Path) -> None:
    answered(tmp_path, 10)
    records = judge_all(tmp_path, Speaker(lambda *_: None))
    assert {r.verdicts[JUDGE.id].reason for r in records} == {"the judge gave no reply: it is down"}
    with RunStore.open(tmp_path) as store:
        assert store.retract(JUDGE.id, status="judge-failed") == 10
        assert not any(JUDGE.id in p.judged for p in store.progress()), "nothing of what it said counts any more"
    records = judge_all(tmp_path, Speaker(right))
    assert {r.verdicts[JUDGE.id].status for r in records} == {"labelled"}
    with RunStore.read(tmp_path) as store:
        assert store.judge_usage(JUDGE.id)[0] == 10 * 6 + 10, "what the failed calls cost is not forgotten"


def test_an_answer_with_nothing_in_it_is_unparsed_and_costs_nothing(tmp_path: Path) -> None:
    class Mute(Scripted):
        def _answer(self, request: Request) -> Generation:
            text = "<think>hm" if int(request.digest[:2], 16) % 2 else " \n"
            return replace(super()._answer(request), text=text)

    with RunStore.create(tmp_path, META, toy_instances(10)) as store:
        store.use_engine({})
        AnswerLoop(store, Mute(2), DirectProtocol(Decoding()), [], Toy()).run()
    backend = Speaker(right)
    records = judge_all(tmp_path, backend)
    assert {r.verdicts[JUDGE.id].status for r in records} == {"unparsed"}
    assert backend.asked == []


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    count=st.integers(1, 25),
    capacity=st.integers(1, 9),
    seed=st.integers(0, 1000),
    stops=st.lists(st.integers(0, 15), max_size=4),
)
def test_stopped_anywhere_every_answer_is_judged_once(count: int, capacity: int, seed: int, stops: list[int]) -> None:
    def odd(prompt: str, asked: int) -> str | None:
        number = int(prompt.split()[-1])
        return [right(prompt, asked), "what?", None, right(prompt, asked) if asked else "?"][number % 4]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        answered(folder, count)
        calls = 0
        for looks in [*stops, None]:
            backend = Speaker(odd, capacity, seed)
            with RunStore.open(folder) as store:
                judge_answers(store, JUDGE, backend, stop=stop_after(looks))
            calls += len(backend.asked)
        with RunStore.read(folder) as store:
            records = list(store.records())
            kept = sum(p.judged[JUDGE.id].labelled + p.judged[JUDGE.id].failed for p in store.progress())
    assert kept == count
    for record in records:
        assert record.answer is not None
        number = int(record.answer.text.split()[-1])
        assert record.verdicts[JUDGE.id].status == ["labelled", "judge-failed", "judge-failed", "labelled"][number % 4]
    assert calls <= count * MAX_REPLIES + capacity * MAX_REPLIES * len(stops)


def test_an_answer_on_which_two_workers_lost_the_gpu_is_a_failure_of_the_judge(tmp_path: Path) -> None:
    class Losing(Speaker):
        def step(self) -> Sequence[Generation]:
            if "answer 3#0" in self._waiting:
                raise DeviceLostError(failure("timeout"), "answer 3#0")
            return super().step()

    answered(tmp_path, 8)
    for _ in range(2):
        with pytest.raises(DeviceLostError):
            judge_all(tmp_path, Losing(right, 2))
    records = judge_all(tmp_path, Losing(right, 2))
    assert Counter(record.verdicts[JUDGE.id].status for record in records) == {"labelled": 7, "judge-failed": 1}


def test_a_ceiling_keeps_the_verdicts_there_are(tmp_path: Path) -> None:
    class Broke(Speaker):
        def step(self) -> Sequence[Generation]:
            if len(self.asked) > 12:
                raise BudgetError("the ceiling is reached.")
            return super().step()

    answered(tmp_path, 30)
    with RunStore.open(tmp_path) as store, pytest.raises(BudgetError):
        judge_answers(store, JUDGE, Broke(right))
    with RunStore.read(tmp_path) as store:
        kept = sum(JUDGE.id in record.verdicts for record in store.records())
    assert 0 < kept <= 12
    assert Counter(JUDGE.id in r.verdicts for r in judge_all(tmp_path, Speaker(right))) == {True: 30}


def test_a_judge_elsewhere_works_while_answers_are_made(tmp_path: Path) -> None:
    seen_while_answering = []

    class Slow(Scripted):
        def step(self) -> Sequence[Generation]:
            time.sleep(0.01)
            with RunStore.read(tmp_path) as reader:
                seen_while_answering.append(sum(len(record.verdicts) for record in reader.records()))
            return super().step()

    RunStore.create(tmp_path, META, toy_instances(60)).close()
    judge = Speaker(right)
    with RunStore.open(tmp_path) as store:
        store.use_engine({})
        with ConcurrentJudging(tmp_path, [(JUDGE, lambda: judge)], lambda: False):
            AnswerLoop(store, Slow(2), DirectProtocol(Decoding()), [], Toy()).run()
    with RunStore.read(tmp_path) as store:
        assert all(record.verdicts[JUDGE.id].status == "labelled" for record in store.records())
    assert max(seen_while_answering) > 5
    assert len(judge.asked) == 60
    assert judge.closed
    assert [path.name for path in tmp_path.iterdir()] == ["run.sqlite"], "the store is one file again"


def test_what_goes_wrong_with_a_judge_does_not_end_the_answering(tmp_path: Path) -> None:
    class Broke(Speaker):
        def step(self) -> Sequence[Generation]:
            raise BudgetError("the ceiling is reached.")

    RunStore.create(tmp_path, META, toy_instances(20)).close()
    before = threading.active_count()
    with RunStore.open(tmp_path) as store:
        store.use_engine({})
        with (
            pytest.raises(BudgetError),
            ConcurrentJudging(tmp_path, [(JUDGE, lambda: Broke(right))], lambda: False),
        ):
            AnswerLoop(store, Scripted(2), DirectProtocol(Decoding()), [], Toy()).run()
        assert sum(p.done for p in store.progress()) == 20
    assert threading.active_count() == before


def test_two_judges_of_one_id_that_are_not_the_same_are_told_apart(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, META, toy_instances(2)) as store:
        register_judge(store, JUDGE)
        register_judge(store, JUDGE)
        newer = RubricJudge("openai:gpt", replace(INFO, versions={"openai": "9"}), EvenRubric())
        with pytest.raises(SpecError, match="versions"):
            register_judge(store, newer)
        register_judge(store, newer, accept_engine=True)
        other = RubricJudge("openai:gpt", replace(INFO, weights="0" * 64), EvenRubric())
        with pytest.raises(SpecError, match="weights"):
            register_judge(store, other, accept_engine=True)


def test_a_judge_is_known_again_by_what_was_kept_of_it() -> None:
    """A judge whose identity changes in JSON could never resume a run."""
    assert json.loads(json.dumps(JUDGE.identity())) == JUDGE.identity()
