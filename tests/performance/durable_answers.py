"""Cost of an answer besides the model: an instant backend, judged and committed durably.

Run it by hand: ``python -m tests.performance.durable_answers [INSTANCES]``. It prints, and asserts nothing: the ratio to a
bare SQLite commit of the same size in the same run is what can be compared between machines.
"""

from __future__ import annotations

import multiprocessing
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from app.engine.answer_loop import AnswerLoop
from app.engine.requests_in_flight import InFlight
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from benchmarks.cmc_bench import CMCBench
from benchmarks.protocols.protocols import DirectProtocol
from benchmarks.vocabulary import Decoding, Generation, Instance, Request, Text
from judges.cmc_rules import Match
from mlx_backends.base import Backend, EngineInfo

ANSWERS = (
    "{}",
    "According to the chart, the value is {}.",
    "The text says 17, but the chart shows {0}, so the answer is {0}.",
    "I cannot determine the answer: the image and the text disagree.",
)


class Instant(Backend):
    """Answers in the step after the request."""

    info = EngineInfo("instant", "instant", needs_device=False)
    capacity = 1

    def __init__(self) -> None:
        self.asked_at: list[float] = []
        self.worked: list[float] = []
        self.finished_at: list[float] = []
        self._request: Request | None = None

    def submit(self, request: Request) -> None:
        self.asked_at.append(time.perf_counter())
        self.worked.append(time.thread_time())
        self._request = request

    def step(self) -> Sequence[Generation]:
        assert self._request is not None
        self.finished_at.append(time.perf_counter())
        says = ANSWERS[len(self.finished_at) % len(ANSWERS)].format(self._request.references["image"][0])
        return [Generation(self._request.id, says, "stop", (1, 2, 3))]

    def cancel(self, request_id: str) -> None:
        self._request = None


class Timed(RunStore):
    """Notes when each answer was durable."""

    durable_at: list[float]

    def commit(self, answers: Sequence[NewAnswer], values: Mapping[str, Any] | None = None) -> None:
        super().commit(answers, values)
        self.durable_at += [time.perf_counter()] * len(answers)


def bare_commit(folder: Path, rounds: int = 200) -> float:
    """Milliseconds of one durable commit of one small row."""
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (x)")
    began = time.perf_counter()
    for number in range(rounds):
        connection.execute("INSERT INTO t VALUES (?)", (number,))
    return (time.perf_counter() - began) / rounds * 1000


def instances(count: int) -> Iterator[Instance]:
    """Instances of the four conditions, as large as real ones."""
    for number in range(count):
        condition = CMCBench.conditions[number % 4]
        yield Instance(
            id=f"factual-{number // 4:012x}/{condition}",
            group=f"factual-{number // 4:012x}",
            condition=condition,
            question=f"What is the value of bar {number}?",
            parts=(Text(f"Query: What is the value of bar {number}?. " + "Retrieved evidence. " * 20),),
            references={"image": (str(number + 100),), "text": ("17",)},
            strata={"type": "factual", "source": "chartqa"},
        )


def plan(folder: Path, count: int) -> None:
    """Make the run."""
    meta = {"conditions": list(CMCBench.conditions), "correct": {}}
    RunStore.create(folder, meta, instances(count)).close()


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # In a process of its own, so that the memory of planning does not hide the growth of answering.
        began = time.perf_counter()
        planner = multiprocessing.get_context("spawn").Process(target=plan, args=(folder, count))
        planner.start()
        planner.join()
        planned = time.perf_counter() - began
        store = Timed.open(folder)
        store.durable_at = []
        store.use_engine({"engine": "instant"})
        backend = Instant()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began, worked = time.perf_counter(), time.process_time()
        with InFlight(folder, backend.capacity, {}) as under_way:
            AnswerLoop(store, backend, DirectProtocol(Decoding()), [Match()], CMCBench(), in_flight=under_way).run()
        took, worked = time.perf_counter() - began, time.process_time() - worked
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        gaps = sorted(b - a for a, b in pairwise(store.durable_at))
        idle = sorted(b - a for a, b in zip(backend.finished_at, backend.asked_at[1:], strict=False))
        lags = sorted(d - f for d, f in zip(store.durable_at, backend.finished_at, strict=True))
        bare = bare_commit(folder)
        each_ms = took / count * 1000
        print(f"planning {count} instances: {planned:.2f} s")
        print(
            f"an answer, judged and durable: {each_ms:.3f} ms ({each_ms / bare:.2f} of a bare durable commit, {bare:.3f} ms)"
        )
        print(f"    of it at work, not waiting for disk or processor: {worked / count * 1000:.3f} ms")
        busy = sorted(b - a for a, b in pairwise(backend.worked))
        for name, times in (
            ("at work from one request to the next", busy),
            ("from an answer to the next request, while the model waits", idle),
            ("from one durable answer to the next", gaps),
            ("from finished to durable", lags),
        ):
            p50, p99 = (times[int(share * (len(times) - 1))] * 1000 for share in (0.5, 0.99))
            print(f"{name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
        print(f"peak memory grew by {grown / 1024:.1f} MiB over {count} answers")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
