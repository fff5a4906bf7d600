"""Requests that end workers, nodes that leave, and workers without memory: one error at most, and no other answer changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.engine.workers.cluster import pooled_node, worker_pool
from app.engine.workers.cluster.cluster_backend import ClusterBackend
from app.engine.workers.cluster.cluster_interface import WorkerLostError
from app.engine.workers.cluster.cluster_messages import (
    Loaded,
    MediaReferences,
    NodeJob,
    NotLoaded,
    Orders,
    Problem,
    Proof,
    Report,
)
from app.engine.workers.cluster.node_worker import NodeWorker
from app.engine.workers.cluster.request_dispatch import DEATHS_ALONE, DEATHS_TOGETHER
from benchmarks.errors import ModelError
from benchmarks.vocabulary import Decoding, Media, Message, Request
from mlx_backends.engine_registry import describe
from mlx_backends.models.weight_files import weights_digest
from tests.app.engine.workers.cluster.test_cluster_backend import Answering, answer, expected, opened, requests, texts
from tests.support.demo import FOUR_BIT
from tests.support.local_cluster import LocalCluster, job_of


class Fragile(NodeWorker):
    """A worker that ends as soon as it looks at one of the ``poison`` requests."""

    def __init__(self, poison: Sequence[str], looked: list[str]) -> None:
        super().__init__()
        self._poison, self._looked = poison, looked

    def _look(self, items: Sequence[Request]) -> None:
        for item in items:
            if item.instance_id in self._poison:
                self._looked.append(item.instance_id)
                raise WorkerLostError("it was killed", crashed=True)

    def prove(self, request: Request, media: MediaReferences) -> Proof | Problem:
        self._look([request])
        return super().prove(request, media)

    def exchange(self, orders: Orders) -> Report:
        self._look(orders.requests)
        return super().exchange(orders)


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("poison", [["instance-0"], ["instance-0", "instance-1"], ["instance-190"]])
def test_a_request_that_ends_every_worker_is_the_only_error_also_among_the_probe(poison: list[str], nodes: int) -> None:
    looked: list[str] = []
    backend = opened(LocalCluster(*"abc"[:nodes], make=lambda name: Fragile(poison, looked)))
    items = requests(200)
    answers = answer(backend, items)
    assert sorted(a.request_id for a in answers if a.finish_reason == "error") == [f"{name}#0" for name in poison]
    assert texts([a for a in answers if a.finish_reason != "error"]) == {
        name: text for name, text in expected(items).items() if name.removesuffix("#0") not in poison
    }
    assert len(looked) <= len(poison) * (DEATHS_TOGETHER + DEATHS_ALONE)
    assert not any(node.state == "failed" for node in backend.status())


@pytest.mark.parametrize(("capacity", "begun"), [(1, 1), (2, 2), (64, 3)])
def test_requests_that_only_wait_on_a_node_are_not_suspected(capacity: int, begun: int) -> None:
    """Requests that it had not received when it ended, and those beyond what it answers at a time, are not blamed."""
    cluster, items = LocalCluster("a"), requests(5)
    backend = opened(cluster)
    node = backend._pool.nodes["a"]
    for item in items:
        backend.submit(item)
    received, coming = (tuple(item.id for item in backend._dispatcher.take("a", count)) for count in (3, 2))
    node.state, node.capacity = "ready", capacity
    node.calls = {1: pooled_node.Call("exchange", 0.0, received), 2: pooled_node.Call("exchange", 0.0, coming)}
    assert backend._begun(node) == list(received)[:begun]


def test_nodes_that_leave_are_no_requests_fault() -> None:
    left = 0

    class Waiting(NodeWorker):
        """A worker that answers nothing before nodes have left often enough."""

        def exchange(self, orders: Orders) -> Report:
            if left <= DEATHS_TOGETHER + DEATHS_ALONE:
                self._queue.extend(orders.requests)
                return Report([])
            return super().exchange(orders)

    cluster = LocalCluster("a", make=lambda name: Waiting())
    backend, items = opened(cluster), requests(1)

    def disturb(step: int) -> None:
        nonlocal left
        if left <= DEATHS_TOGETHER + DEATHS_ALONE and backend.status()[-1].held:
            left += 1
            cluster.names = [f"node {left}"]
            cluster.now += worker_pool.DISCOVER_SECONDS

    assert texts(answer(backend, items, disturb)) == expected(items)
    assert [node.state for node in backend.status()] == ["gone"] * left + ["ready"]


def test_check_of_batched_answers_that_ends_workers_leaves_a_node_that_answers_sequentially() -> None:
    class Crowded(NodeWorker):
        def configure(self, items: Sequence[Request] | None, media: MediaReferences) -> Any:
            if items is not None:
                raise WorkerLostError("it was killed", crashed=True)
            return super().configure(items, media)

    items = requests(60)
    backend = opened(LocalCluster("a", make=lambda name: Crowded()))
    assert backend.choose_mode(items[:32]) is None
    assert texts(answer(backend, items)) == expected(items)
    assert any("a answered one request at a time" in remark for remark in backend.remarks)


def test_a_node_that_runs_out_of_memory_answers_fewer_requests_at_a_time() -> None:
    widths: list[int | None] = []

    class Wide(NodeWorker):
        def load(self, job: NodeJob) -> Loaded | NotLoaded:
            widths.append(job.max_in_flight)
            report = super().load(job)
            self.backend.capacity = job.max_in_flight or 16
            return report

        def configure(self, items: Sequence[Request] | None, media: MediaReferences) -> Any:
            width = self.backend.capacity
            super().configure(items, media)
            self.backend.capacity = width

        def exchange(self, orders: Orders) -> Report:
            report = super().exchange(orders)
            if len(report.generations) > 5:
                raise MemoryError
            return report

    items = requests(100)
    backend = opened(LocalCluster("a", make=lambda name: Wide()))
    assert texts(answer(backend, items)) == expected(items)
    assert widths == [None, 8, 4]


class Poor(NodeWorker):
    """A worker that has a problem after its first answers, as one whose disk is full, or one that cannot get a medium."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__()
        self._problems = problems

    def exchange(self, orders: Orders) -> Report:
        report = super().exchange(orders)
        return replace(report, problem=self._problems.pop() if report.generations and self._problems else None)


@pytest.mark.parametrize("passes", [False, True])
def test_a_node_with_a_problem_answers_nothing_more_or_starts_again_if_that_passes(passes: bool) -> None:
    problems = [Problem("it could not get a medium", passes)]
    cluster = LocalCluster("poor", "rich", make=lambda name: Poor(problems if name == "poor" else []))
    backend, items = opened(cluster), requests(900)

    def disturb(step: int) -> None:
        cluster.now += 1

    assert texts(answer(backend, items, disturb)) == expected(items)
    state = {node.name: node.state for node in backend.status()}["poor"]
    assert state == ("ready" if passes else "failed")


def test_files_that_cannot_be_read_fail_the_node_that_lacks_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)

    class Lacking(NodeWorker):
        def load(self, job: NodeJob) -> Loaded | NotLoaded:
            return NotLoaded("it does not have the model", missing="model")

    def unreadable(files: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
        yield files[0].name, b""
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(worker_pool, "pieces", unreadable)
    with pytest.raises(ModelError, match="Input/output error"):
        opened(LocalCluster("a", make=lambda name: Lacking()), job=job_of(str(FOUR_BIT), weights_digest(FOUR_BIT)))


def test_cluster_that_takes_no_more_data_ends_the_run_in_a_sentence(tmp_path: Path) -> None:
    class Full(LocalCluster):
        def put(self, data: bytes) -> Any:
            raise ModelError("the cluster takes no more data")

    (tmp_path / "image.png").write_bytes(b"image")
    image = Media(hashlib.sha256(b"image").hexdigest(), ".png")
    cluster, engine = Full("a", make=lambda name: Answering()), describe("policy:random")
    media = lambda medium: tmp_path / "image.png"  # noqa: E731
    backend = ClusterBackend(cluster, media, job_of("real/model"), engine, clock=cluster.clock)
    backend.submit(Request("r", 0, (Message("user", (image,)),), Decoding()))
    with pytest.raises(ModelError, match="no more data"):
        answer_all(backend)


def answer_all(backend: ClusterBackend) -> None:
    while not backend.step():
        pass
