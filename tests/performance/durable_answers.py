"""How much an answer costs besides the model: a backend that answers at once, judged, durable.

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
from collections.abc import Sequence
from pathlib import Path

from app.engine.loop import answer_pending
from app.store.run import Answer, RunStore
from benchmarks.base import Decoding, Generation, Request
from benchmarks.protocols import Direct
from mlx_backends.base import Backend, EngineInfo
from tests.app.test_store import META
from tests.support.toy import EvenJudge, Toy, toy_instances


class Instant(Backend):
    """Answers in the step after the request."""

    info = EngineInfo("instant", "instant", needs_device=False)
    capacity = 1

    def __init__(self) -> None:
        self.finished_at: list[float] = []
        self._request: Request | None = None

    def submit(self, request: Request) -> None:
        self._request = request

    def step(self) -> Sequence[Generation]:
        assert self._request is not None
        self.finished_at.append(time.perf_counter())
        return [Generation(self._request.id, f"the answer is {len(self.finished_at)}", "stop", (1, 2, 3))]

    def cancel(self, request_id: str) -> None:
        self._request = None


class Timed(RunStore):
    """Notes when each answer was durable."""

    durable_at: list[float]

    def commit(self, answers: Sequence[Answer]) -> None:
        super().commit(answers)
        self.durable_at += [time.perf_counter()] * len(answers)


def bare_commit(folder: Path, rounds: int = 200) -> float:
    """Milliseconds of one durable commit of one small row."""
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (x)")
    began = time.perf_counter()
    for number in range(rounds):
        connection.execute("INSERT INTO t VALUES (?)", (number,))
    return (time.perf_counter() - began) / rounds * 1000


def plan(folder: Path, count: int) -> None:
    """Make the run, with two conditions an example."""
    RunStore.create(folder, META, toy_instances(count)).close()


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
        began = time.perf_counter()
        answer_pending(store, backend, Direct(Decoding()), [EvenJudge()], Toy())
        took = time.perf_counter() - began
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        lags = sorted(d - f for d, f in zip(store.durable_at, backend.finished_at, strict=True))
        bare = bare_commit(folder)
        each = took / count * 1000
        print(f"planning {count} instances: {planned:.2f} s")
        print(
            f"an answer, judged and durable: {each:.3f} ms ({each / bare:.2f} of a bare durable commit, {bare:.3f} ms)"
        )
        for share in (0.5, 0.99):
            print(f"from finished to durable, p{share * 100:.0f}: {lags[int(share * (count - 1))] * 1000:.2f} ms")
        print(f"peak memory grew by {grown / 1024:.1f} MiB over {count} answers")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
