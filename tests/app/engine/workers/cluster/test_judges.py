"""A judge that is a model of this machine, on the nodes of a cluster: the worker takes its verdicts from there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.engine.workers.cluster.cluster_backend import ClusterBackend
from app.engine.workers.cluster.cluster_messages import Loaded, NodeJob, NotLoaded
from app.engine.workers.cluster.node_worker import NodeWorker
from app.engine.workers.device_lock import device_lock_path
from app.engine.workers.run_worker import Worker
from app.engine.workers.worker_job import Job
from app.report.runs.cluster_node_lines import node_lines
from app.store.file_locks import FileLock
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.store_types import NODES_KEY, NodeStatus
from app.store.workspace import Workspace
from benchmarks.vocabulary import Generation, Request
from mlx_backends.base import Backend, MediaPath
from mlx_backends.engine_registry import describe
from tests.app.engine.test_judge_faults import make_run
from tests.support.demo import FOUR_BIT
from tests.support.local_cluster import LocalCluster

COUNT = 40


class Strict(Backend):
    """A judge that finds the text's value in every answer."""

    capacity = 4

    def __init__(self, model: str) -> None:
        self.info = describe(model)
        self._waiting: list[Request] = []

    def submit(self, request: Request) -> None:
        self._waiting.append(request)

    def step(self) -> Sequence[Generation]:
        done, self._waiting = self._waiting, []
        return [Generation(request.id, json.dumps({"label": "TEXT"}), "stop") for request in done]

    def cancel(self, request_id: str) -> None:
        self._waiting = [request for request in self._waiting if request.id != request_id]


def test_nodes_judge_and_leave_the_device_of_this_machine_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters: list[LocalCluster] = []

    def connect(workers: str, job: NodeJob, media: MediaPath, **options: object) -> ClusterBackend:
        assert workers == "ray"
        clusters.append(LocalCluster("mac-1", "mac-2"))
        backend = ClusterBackend(clusters[-1], media, job, describe(job.model), clock=clusters[-1].clock)
        assert backend.wait()
        return backend

    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_: tmp_path / "cache")
    monkeypatch.setattr("app.engine.workers.cluster.cluster_connection.connect", connect)
    for module in ("worker_model", "run_worker"):
        monkeypatch.setattr(
            f"app.engine.workers.{module}.load_backend", lambda *_, **__: pytest.fail("loads the judge itself")
        )
    monkeypatch.setattr("app.engine.workers.cluster.node_worker.load_backend", lambda model, *_, **__: Strict(model))
    monkeypatch.setattr("app.engine.workers.cluster.node_worker.NodeWorker._lock_device", lambda *_: "")
    make_run(Workspace(tmp_path), COUNT, lambda number: f"Maybe {number}?")
    folder = tmp_path / "runs" / "r"
    device = FileLock(device_lock_path())
    device.path.parent.mkdir(parents=True)
    assert device.acquire("another run of this machine")
    try:
        assert Worker(Job((folder,), (str(FOUR_BIT), "match"), workers="ray")).work() == 0
    finally:
        device.release()
    (cluster,) = clusters
    assert cluster.closed
    with RunStore.read(folder) as store:
        (judge,) = store.meta("judges")
        assert {record.verdicts[judge].label for record in store.records()} == {"TEXT"}
        assert store.meta(NODES_KEY)
    nodes = read_summary(folder).nodes
    assert {(node.name, node.judge) for node in nodes} == {("mac-1", judge), ("mac-2", judge)}
    assert sum(node.answers for node in nodes) == COUNT
    assert all(judge in line for line in node_lines(nodes))


def test_nodes_are_shown_before_the_first_one_has_loaded_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holders = ["run one"] * 3

    class Waiting(NodeWorker):
        def load(self, job: NodeJob) -> Loaded | NotLoaded:
            return NotLoaded(holder=holders.pop()) if holders else super().load(job)

    def connect(workers: str, job: NodeJob, media: MediaPath, **options: object) -> ClusterBackend:
        cluster = LocalCluster("mac-1", make=lambda name: Waiting())
        return ClusterBackend(cluster, media, job, describe(job.model), clock=cluster.clock)

    lines: list[str] = []

    def saved(store: RunStore, judge: str, nodes: Sequence[NodeStatus]) -> None:
        lines.extend(node_lines(nodes))

    monkeypatch.setattr("app.engine.workers.cluster.cluster_connection.connect", connect)
    monkeypatch.setattr("app.engine.workers.worker_model._save_nodes", saved)
    monkeypatch.setattr("app.engine.workers.cluster.node_worker.load_backend", lambda model, *_, **__: Strict(model))
    monkeypatch.setattr("app.engine.workers.cluster.node_worker.NodeWorker._lock_device", lambda *_: "")
    make_run(Workspace(tmp_path), 4, lambda number: f"Maybe {number}?")
    assert Worker(Job((tmp_path / "runs" / "r",), (str(FOUR_BIT),), workers="ray")).work() == 0
    waiting = lines.index("mac-1: waiting (for run one)")
    assert waiting < next(number for number, line in enumerate(lines) if "answers" in line)
