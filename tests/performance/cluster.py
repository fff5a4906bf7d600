"""Cost of spreading requests over a cluster: measured per request on a real one, and simulated for 1 to 1,000 workers.

Run it by hand: ``python -m tests.performance.cluster [REQUESTS]``, by default with 10,000; Ray's part is left out without Ray.
The simulation runs the driver's real code against workers that exist on paper. Its time is the driver's measured time,
plus what is assumed for a call of Ray and for storing an answer, with the answers' assumed latencies in between.
"""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from app.engine.workers.cluster.cluster_backend import ClusterBackend
from app.engine.workers.cluster.cluster_connection import node_job
from app.engine.workers.cluster.cluster_interface import Cluster, Member
from app.engine.workers.cluster.cluster_messages import Loaded, Orders, Proof, Report
from benchmarks.vocabulary import Decoding, Generation, Media, Message, Request, Text
from mlx_backends.base import no_media
from mlx_backends.engine_registry import describe

MODEL = "policy:random"
CALL_SECONDS = 0.25e-3
"""The assumed cost, for the driver, of a call of an actor and of its result."""
STORE_SECONDS = 0.35e-3
"""The assumed cost, for the driver, of judging and storing an answer."""
QUESTIONS = 8
"""The questions about an image."""


def requests(count: int) -> list[Request]:
    references = {"image": ("seven",), "text": ("eight",)}
    return [
        Request(
            f"instance-{number}",
            0,
            (Message("user", (Media(f"{number // QUESTIONS:064x}", ".png"), Text(f"question {number}"))),),
            Decoding(),
            references=references,
        )
        for number in range(count)
    ]


def answer(backend: ClusterBackend, items: Sequence[Request]) -> int:
    """Answer all; the number of answers."""
    position = answered = 0
    while answered < len(items):
        while position < len(items) and position - answered < backend.capacity:
            backend.submit(items[position])
            position += 1
        for generation in backend.step():
            backend.engine_of(generation.request_id)
            answered += 1
    return answered


class PaperCluster(Cluster):
    """Workers that take ``latency`` seconds for an answer, and a clock that the driver's work and theirs move on."""

    def __init__(self, workers: int, latency: float) -> None:
        self._members = [Member(f"w{number}", f"w{number}") for number in range(workers)]
        self._latency = latency
        self._info = describe(MODEL)
        self._events: list[tuple[float, int, Any]] = []
        self._free_at: dict[str, float] = {}
        self._queues: dict[str, list[Request]] = {}
        self._calls = 0
        self._now = 0.0
        self._measured = time.perf_counter()
        self.waited = 0.0

    def clock(self) -> float:
        """The simulated time, with what the driver has worked since the last look."""
        measured = time.perf_counter()
        self._now += measured - self._measured
        self._measured = measured
        return self._now

    def charge(self, seconds: float) -> None:
        self._now += seconds

    def members(self) -> Sequence[Member]:
        return self._members

    def start(self, member: Member) -> Any:
        self._queues[member.id] = []
        self._free_at[member.id] = 0.0
        return member.id

    def call(self, worker: Any, method: str, *arguments: Any) -> int:
        self._calls += 1
        self.charge(CALL_SECONDS)
        now = self.clock()
        result: Any = True
        begin = max(now, self._free_at[worker])
        if method == "load":
            result = Loaded(self._info, {})
        elif method == "prove":
            result = Proof(("stop", ""))
        elif method == "configure":
            result = None
        elif method == "exchange":
            (orders,) = arguments
            assert isinstance(orders, Orders)
            queue = self._queues[worker]
            queue.extend(orders.requests)
            returned = [queue.pop().id for _ in range(min(orders.give_back, len(queue)))]
            generations: list[Generation] = []
            if queue:
                generations.append(Generation(queue.pop(0).id, "seven", "stop"))
                begin += self._latency
            result = Report(generations, returned, len(queue))
        self._free_at[worker] = begin
        heapq.heappush(self._events, (begin, self._calls, result))
        return self._calls

    def poll(self, seconds: float) -> Sequence[tuple[int, Any]]:
        now = self.clock()
        if self._events and self._events[0][0] > now:
            pause = min(seconds, self._events[0][0] - now)
            self.charge(pause)
            self.waited += pause
            now = self.clock()
        finished = []
        while self._events and self._events[0][0] <= now:
            _, number, result = heapq.heappop(self._events)
            if isinstance(result, Report):
                self.charge(STORE_SECONDS * len(result.generations))
            finished.append((number, result))
        self._measured = time.perf_counter()
        return finished

    def put(self, data: bytes) -> Any:
        return data

    def release(self, worker: Any, *, at_once: bool = False) -> None:
        return None

    def close(self) -> None:
        return None


def simulate(workers: int, latency: float) -> tuple[float, float, float]:
    """Return the efficiency, the answers per second, and the share of the time in which the driver works."""
    count = min(20_000, max(400, workers * 20))
    cluster = PaperCluster(workers, latency)
    backend = ClusterBackend(cluster, no_media, node_job(MODEL, "simulated"), describe(MODEL), clock=cluster.clock)
    backend.wait()
    started, waited = cluster.clock(), cluster.waited
    answer(backend, requests(count))
    seconds = cluster.clock() - started
    ideal = latency * -(-count // workers)
    return ideal / seconds, count / seconds, 1 - (cluster.waited - waited) / seconds


def measure(count: int) -> None:
    """Print the time per request on a real Ray cluster of this machine."""
    from app.engine.workers.cluster.ray_cluster import RayCluster

    cluster = RayCluster("ray", (MODEL,))
    backend = ClusterBackend(cluster, no_media, node_job(MODEL, "measured"), describe(MODEL))
    try:
        backend.wait()
        answer(backend, requests(100))
        started = time.perf_counter()
        answer(backend, requests(count))
        seconds = time.perf_counter() - started
    finally:
        backend.close()
    print(f"Ray, one node: {count:,} requests in {seconds:.2f} s, {1000 * seconds / count:.3f} ms a request")


def main() -> None:
    if find_spec("ray") is not None:
        measure(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    print(f"{'latency':>8} {'workers':>8} {'efficiency':>11} {'answers/s':>10} {'driver busy':>12}")
    for latency in (0.05, 0.5, 5.0):
        for workers in (1, 2, 4, 10, 30, 100, 300, 1000):
            efficiency, speed, busy = simulate(workers, latency)
            print(f"{latency:>7}s {workers:>8,} {efficiency:>11.0%} {speed:>10,.1f} {busy:>12.0%}", flush=True)


if __name__ == "__main__":
    main()
