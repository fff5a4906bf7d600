"""A cluster without Ray: workers in this process, which do one call each time the driver looks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from app.engine.workers.cluster.cluster_interface import Cluster, Member, WorkerLostError
from app.engine.workers.cluster.cluster_messages import Loaded, MediaReferences, NodeJob, NotLoaded, Problem, Proof
from app.engine.workers.cluster.node_worker import NodeWorker
from benchmarks.vocabulary import Request


def job_of(model: str, weights: str | None = None, owner: str = "me") -> NodeJob:
    """The job of a node that answers as ``model``, which need not be on this machine."""
    return NodeJob(model, model, weights, None, model, owner, version("rashomon"))


class LocalCluster(Cluster):
    """Nodes by their names, each with a worker that ``make`` returns; time passes as calls are polled."""

    def __init__(self, *names: str, make: Callable[[str], NodeWorker] = lambda name: NodeWorker()) -> None:
        self.names = list(names)
        self.now = 0.0
        self.released: list[str] = []
        self.hung: set[str] = set()
        self.methods: list[tuple[str, str]] = []
        self.closed = False
        self._make = make
        self._calls: dict[str, deque[tuple[int, str, tuple[Any, ...]]]] = {}
        self._workers: dict[str, tuple[str, NodeWorker]] = {}
        self._failed: list[tuple[int, Any]] = []
        self._count = 0

    def clock(self) -> float:
        return self.now

    def members(self) -> Sequence[Member]:
        return [Member(name, name) for name in self.names]

    def start(self, member: Member) -> Any:
        self._count += 1
        worker = f"{member.id} {self._count}"
        self._workers[worker] = member.id, self._make(member.id)
        self._calls[worker] = deque()
        return worker

    def call(self, worker: Any, method: str, *arguments: Any) -> int:
        self._count += 1
        if worker in self._calls:
            self._calls[worker].append((self._count, method, arguments))
        else:
            self._failed.append((self._count, WorkerLostError("the worker has ended")))
        return self._count

    def poll(self, seconds: float) -> Sequence[tuple[int, Any]]:
        self.now += seconds
        finished, self._failed = self._failed, []
        for worker, calls in list(self._calls.items()):
            name, node = self._workers[worker]
            if calls and name not in self.hung:
                number, method, arguments = calls.popleft()
                self.methods.append((name, method))
                try:
                    finished.append((number, getattr(node, method)(*arguments)))
                except Exception as error:
                    finished.append((number, error))
        return finished

    def put(self, data: bytes) -> Any:
        return data

    def release(self, worker: Any, *, at_once: bool = False) -> None:
        name, node = self._workers[worker]
        self.released.append(name)
        self._calls.pop(worker, None)
        if not at_once:
            node.end()

    def close(self) -> None:
        self.closed = True

    def kill(self, name: str, *, crashed: bool = True, out_of_memory: bool = False) -> None:
        """End the worker on a node, as a crash does, or as one that leaves."""
        error = WorkerLostError("it was killed", crashed=crashed, out_of_memory=out_of_memory)
        for worker in [worker for worker in self._calls if self._workers[worker][0] == name]:
            self._failed += [(number, error) for number, *_ in self._calls.pop(worker)]


class SizedWorker(NodeWorker):
    """A worker on a node with that much memory, in bytes; one that cannot tell if None."""

    def __init__(self, size: int | None) -> None:
        super().__init__()
        self._size = size

    def memory(self, models: Sequence[str]) -> dict[str, int]:
        if self._size is None:
            raise WorkerLostError("it was killed")
        return dict.fromkeys(models, self._size)


class OtherWorker(NodeWorker):
    """A worker whose model is another in some fact, or answers otherwise; its engine has them, too."""

    def __init__(self, **facts: Any) -> None:
        super().__init__()
        self._answers = facts.pop("answers", None)
        self._facts = facts

    def load(self, job: NodeJob) -> Loaded | NotLoaded:
        report = super().load(job)
        if isinstance(report, NotLoaded):
            return report
        return replace(
            report, info=replace(report.info, **self._facts), engine={**report.engine, **self._facts, "other": True}
        )

    def prove(self, request: Request, media: MediaReferences) -> Proof | Problem:
        return super().prove(request, media) if self._answers is None else Proof(self._answers)
