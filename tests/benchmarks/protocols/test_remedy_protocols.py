"""Remedies against a scripted reader whose error rate is known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from math import comb
from pathlib import Path

import pytest

from app.engine.answer_loop import AnswerLoop
from app.store.run_store import RunStore
from benchmarks.answer_confidence import confidence_of
from benchmarks.protocols.protocols import DirectProtocol, Protocol, SystemProtocol
from benchmarks.protocols.remedy_protocols import NOTE_TOKENS, ReadThenCompare, SelfConsistency, Verify, vote
from benchmarks.vocabulary import Decoding, Generation, Instance, Media, Record, Request, Text
from judges.base import FunctionJudge
from tests.app.store.test_run_store import META
from tests.support.toy import EvenJudge, Scripted, Toy, toy_instances

SHORT = Decoding(max_tokens=16, temperature=0.7)
RIGHT, WRONG = "answer 2", "answer 1"


@dataclass
class Reader(Scripted):
    """A reader that is right with a probability that depends on the request; the draw follows from the sampling seed."""

    accuracy: Callable[[Request], float]

    def __post_init__(self) -> None:
        super().__init__(capacity=64)
        self.requests: list[Request] = []

    def _answer(self, request: Request) -> Generation:
        self.requests.append(request)
        draw = random.Random(f"{request.instance_id} {request.sampling_seed}").random()
        text = RIGHT if draw < self.accuracy(request) else WRONG
        return Generation(request.id, text, "stop", (1, 2), 100, 2, 0.25, 0.5)


def answer(
    folder: Path, protocol: Protocol, reader: Scripted, n: int, stop: Callable[[], bool] = lambda: False
) -> list[Record]:
    """Answer ``n`` instances, or those that a run in ``folder`` left; return the records."""
    if not folder.exists() or not any(folder.iterdir()):
        folder.mkdir(exist_ok=True)
        RunStore.create(folder, META, toy_instances(n)).close()
    judges: Sequence[FunctionJudge] = (EvenJudge(),)
    with RunStore.open(folder) as store:
        store.use_engine({"engine": "scripted"})
        AnswerLoop(store, reader, protocol, judges, Toy(), stop=stop).run()
        return list(store.records())


def _is_over(looks: Iterator[int], most: int) -> bool:
    return next(looks) >= most


def right_share(records: Sequence[Record]) -> float:
    return sum(record.verdicts["even@1"].label == "YES" for record in records) / len(records)


def no_options(instance: Instance) -> tuple[str, ...]:
    return ()


@pytest.mark.slow
@pytest.mark.parametrize("samples", [3, 5])
def test_a_vote_of_a_reader_has_the_accuracy_of_a_majority(tmp_path: Path, samples: int) -> None:
    p, n = 0.7, 800
    reader = Reader(lambda request: p)
    records = answer(tmp_path, SelfConsistency(DirectProtocol(SHORT), no_options, samples), reader, n)
    expected = sum(comb(samples, k) * p**k * (1 - p) ** (samples - k) for k in range(samples // 2 + 1, samples + 1))
    assert right_share(records) == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / n))
    assert len(reader.requests) == samples * n, "the vote itself calls no model"
    assert len({(r.instance_id, r.sampling_seed) for r in reader.requests}) == samples * n
    last = records[0].answer
    assert last is not None
    assert len(records[0].generations) == samples + 1
    assert (last.calls, last.prompt_tokens, last.completion_tokens, last.decode_s) == (0, 0, 0, None)


def test_agreement_is_the_confidence_of_a_vote(tmp_path: Path) -> None:
    reader = Reader(lambda request: 0.7)
    for record in answer(tmp_path, SelfConsistency(DirectProtocol(SHORT), no_options, 5), reader, 40):
        *samples, final = record.generations
        agreement = sum(sample.text == final.text for sample in samples) / 5
        confidence = confidence_of(record.instance, (), final.scores, tokens=0, finish_reason="stop")
        assert confidence.answer == pytest.approx(agreement)
        assert agreement > 0.5


def test_a_vote_that_was_stopped_ends_as_one_that_was_not(tmp_path: Path) -> None:
    protocol = SelfConsistency(DirectProtocol(SHORT), no_options, 3)
    whole = answer(tmp_path / "whole", protocol, Reader(lambda request: 0.7), 30)
    for looks in (1, 2, 3, 4):
        counter = count()
        answer(tmp_path / "parts", protocol, Reader(lambda request: 0.7), 30, partial(_is_over, counter, looks))
    assert answer(tmp_path / "parts", protocol, Reader(lambda request: 0.7), 30) == whole


def test_reading_first_takes_two_calls_and_gains_what_the_second_gains(tmp_path: Path) -> None:
    n = 400
    reader = Reader(lambda request: 0.9 if request.step == 1 else 0.5)
    records = answer(tmp_path, ReadThenCompare(DirectProtocol(SHORT)), reader, n)
    assert len(reader.requests) == 2 * n
    assert right_share(records) == pytest.approx(0.9, abs=4 * math.sqrt(0.09 / n))
    reading, comparing = sorted(
        (r for r in reader.requests if r.instance_id == "example-0/plain"), key=lambda r: r.step
    )
    assert reading.decoding.max_tokens == NOTE_TOKENS
    assert comparing.decoding.max_tokens == 16
    assert [message.role for message in comparing.messages] == ["user", "assistant", "user"]
    assert comparing.messages[:1] == reading.messages
    assert comparing.messages[1].parts == (Text(records[0].generations[0].text),)


def test_a_check_takes_three_calls_and_shows_the_model_its_answer(tmp_path: Path) -> None:
    n = 400
    reader = Reader(lambda request: {0: 0.5, 1: 0.0, 2: 0.8}[request.step])
    records = answer(tmp_path, Verify(DirectProtocol(SHORT)), reader, n)
    assert len(reader.requests) == 3 * n
    assert right_share(records) == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / n))
    steps = sorted((r for r in reader.requests if r.instance_id == "example-0/plain"), key=lambda r: r.step)
    assert [step.decoding.max_tokens for step in steps] == [16, NOTE_TOKENS, 16]
    assert [len(step.messages) for step in steps] == [1, 3, 5]
    assert steps[2].messages[1].parts == (Text(records[0].generations[0].text),)
    assert steps[2].messages[3].parts == (Text(WRONG),)


@pytest.mark.parametrize("remedy", [ReadThenCompare, Verify, lambda protocol: SelfConsistency(protocol, no_options, 3)])
def test_an_error_ends_an_instance_and_a_system_text_stays(remedy: Callable[[Protocol], Protocol]) -> None:
    protocol, instance = remedy(SystemProtocol(DirectProtocol(SHORT), "Be brief.")), toy_instances(1)[0]
    first = protocol.next(instance, ())
    assert first is not None
    assert first.messages[0].role == "system"
    assert protocol.next(instance, (Generation(first.id, "", "error", error="boom"),)) is None
    second = protocol.next(instance, (Generation(first.id, "<think>hm", "length"),))
    assert second is not None
    assert second.messages[0] == first.messages[0]
    assert all(part.text for message in second.messages for part in message.parts if isinstance(part, Text))


IMAGE = Instance(
    "e/c", "e", "c", "?", (Media("0" * 64, ".png"),), {"image": ("12",), "text": ("15",), "image letter": ("A",)}
)


@pytest.mark.parametrize(
    ("answers", "winner"),
    [
        (["12", "15", "12"], "12"),
        (["15", "12"], "15"),  # a tie goes to the first
        (["15", "The 12.", "12"], "The 12."),
        (["1,200", "7", "1200.0"], "1,200"),
        (["", "<think>12", "15"], "15"),
        (["", ""], ""),
    ],
)
def test_votes_go_by_value_and_ties_to_the_first(answers: Sequence[str], winner: str) -> None:
    assert vote(IMAGE, answers, ()).text == winner


def test_votes_that_need_context_are_not_one_unless_the_question_settles_it() -> None:
    answers = ["7", "43", "43%", "7"]
    assert vote(IMAGE, answers, ()).text == "7"
    assert vote(replace(IMAGE, question="What percentage is it?"), ["7", "43", "43%"], ()).text == "43"
    assert vote(IMAGE, ["$43", "€43", "€43"], ()).text == "€43"


def test_the_shares_of_values_and_options_are_the_scores() -> None:
    image, text, abstention, best = vote(IMAGE, ["12", "15", "12", "12"], ()).scores
    assert (image, text, abstention, best) == (math.log(0.75), math.log(0.25), None, math.log(0.75))
    choice = vote(IMAGE, ["A", "The answer is (A).", "(B)", "A"], ("(A)", "(B)", "(C)"))
    assert choice.text == "A"
    assert choice.scores == (math.log(0.75), math.log(0.25), None)
    confidence = confidence_of(IMAGE, ("(A)", "(B)", "(C)"), choice.scores, tokens=0, finish_reason="stop")
    assert confidence.answer == pytest.approx(0.75)
    assert vote(IMAGE, ["no idea", "no idea", "A"], ("(A)", "(B)")).scores == ()
