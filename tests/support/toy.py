"""A benchmark of no paper and a backend that obeys orders, for testing the engine alone."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.answers import Answers
from benchmarks.base import Benchmark, DataSource
from benchmarks.build import Build, BuildOptions
from benchmarks.prompt_template import Prompts
from benchmarks.protocols.protocols import Protocol
from benchmarks.vocabulary import (
    Decoding,
    Generation,
    Instance,
    Message,
    Record,
    Request,
    Table,
    Text,
    Verdict,
)
from judges.base import FunctionJudge
from mlx_backends.base import Backend, EngineInfo


class Toy(Benchmark):
    """Instances that ask for their own number; the label is YES when the answer is even."""

    name = "toy"
    title = "Toy"
    paper = "none"
    conditions = ("plain", "twisted")
    labels = ("YES", "NO")
    prompt_sets: Mapping[str, str] = {"paper": "the only one"}
    sources: tuple[DataSource, ...] = ()
    stratum = "kind"
    judges = ("even",)

    def build(self, sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
        raise AssertionError("a toy is not built")

    def instances(self, build: Build, prompt_set: Prompts) -> Iterator[Instance]:
        raise AssertionError("a toy is not built")

    def correct(self, condition: str, label: str) -> bool:
        return (label == "YES") == (condition == "plain")

    def tables(self, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> list[Table]:
        return []


def toy_instances(count: int) -> list[Instance]:
    """``count`` instances, two conditions an example."""
    return [
        Instance(
            id=f"example-{number // 2}/{Toy.conditions[number % 2]}",
            group=f"example-{number // 2}",
            condition=Toy.conditions[number % 2],
            question=f"number {number}?",
            parts=(Text(f"number {number}?"),),
            references={"image": (str(number),)},
            strata={"kind": "a" if number % 3 else "b"},
        )
        for number in range(count)
    ]


class TwoSteps(Protocol):
    """Asks a second time with the first answer in the conversation, as MM-CoT does."""

    name = "two-steps"

    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        if len(generations) == 2:
            return None
        messages = [Message("user", instance.parts)]
        for generation in generations:
            messages += [Message("assistant", (Text(generation.text),)), Message("user", (Text("Sure?"),))]
        return Request(instance.id, len(generations), tuple(messages), Decoding())


class Scripted(Backend):
    """Answers in any order, up to ``capacity`` at a time; the answer is a function of the request alone."""

    def __init__(self, capacity: int = 1, seed: int = 0, failing: frozenset[str] = frozenset()) -> None:
        self.info = EngineInfo("scripted", "scripted", needs_device=False)
        self.capacity = capacity
        self.calls: list[str] = []
        self.cancelled: list[str] = []
        self._random = random.Random(seed)
        self._failing = failing
        self._waiting: dict[str, Request] = {}

    def submit(self, request: Request) -> None:
        if len(self._waiting) >= self.capacity:
            raise RuntimeError("more than the capacity")
        self.calls.append(request.id)
        self._waiting[request.id] = request

    def step(self) -> Sequence[Generation]:
        done = [key for key in list(self._waiting) if self._random.random() < 0.7]
        self._random.shuffle(done)
        return [self._answer(self._waiting.pop(key)) for key in done]

    def cancel(self, request_id: str) -> None:
        self.cancelled.append(request_id)
        self._waiting.pop(request_id, None)

    def _answer(self, request: Request) -> Generation:
        if request.id in self._failing:
            return Generation(request.id, "", "error", error="told to fail")
        number = int(request.digest[:8], 16)
        return Generation(
            request.id,
            f"answer {number}",
            "length" if number % 5 == 0 else "stop",
            tokens=(number % 1000, 7),
            prompt_tokens=3,
            completion_tokens=2,
            prefill_s=0.001,
            decode_s=0.002,
            peak_memory=1000 + number % 10,
        )


class EvenJudge(FunctionJudge):
    """Labels an even answer YES; cannot parse those that end in 3 and fails on those that end in 7."""

    name = "even"
    version = "1"
    description = "even or odd"
    benchmarks = ("toy",)

    def judge(self, record: Record) -> Verdict:
        assert record.answer is not None
        number = int(record.answer.text.split()[-1])
        if number % 10 == 7:
            raise ZeroDivisionError("a judge's own fault")
        if number % 10 == 3:
            return Verdict(self.id, "unparsed", reason="ends in 3")
        return Verdict(self.id, "labelled", "YES" if number % 2 == 0 else "NO", reason="parity")
