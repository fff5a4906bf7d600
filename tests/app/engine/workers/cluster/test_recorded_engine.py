"""Device and versions of a run on a cluster: those of its nodes, in the identities of the run and of its judge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.engine.workers.cluster.cluster_backend import ClusterBackend
from app.engine.workers.cluster.cluster_messages import NodeJob
from app.engine.workers.run_worker import Worker
from app.engine.workers.worker_job import Job
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import ModelError
from mlx_backends.base import MediaPath
from mlx_backends.engine_registry import describe
from tests.app.engine.test_judge_faults import make_run
from tests.app.engine.workers.cluster.test_judges import Strict
from tests.support.command import Rashomon
from tests.support.demo import FOUR_BIT
from tests.support.local_cluster import LocalCluster, OtherWorker

GPU = {"device": "cuda", "versions": {"torch": "2.13"}}
RUN = ("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--limit", "2", "--name", "r")
NODES = ("--workers", "ray")


@contextmanager
def nodes(**facts: Any) -> Iterator[None]:
    """A cluster whose nodes have an engine with these facts."""

    def connect(workers: str, job: NodeJob, media: MediaPath, **options: Any) -> ClusterBackend:
        cluster = LocalCluster("a", "b", make=lambda name: OtherWorker(**facts))
        recorded = options["recorded"]
        return ClusterBackend(
            cluster,
            media,
            job,
            recorded or describe(job.model),
            has_answers=recorded is not None,
            accept_engine=options["accept_engine"],
            clock=cluster.clock,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.engine.workers.cluster.cluster_connection.connect", connect)
        patch.setattr("app.engine.workers.cluster.cluster_address.require_extra", lambda *_: None)
        yield


def identity(rashomon: Rashomon) -> dict[str, Any]:
    with RunStore.read(rashomon.workspace / "runs" / "r") as store:
        return dict(store.meta("identity"))


def test_run_has_the_device_and_versions_of_its_nodes_and_keeps_them(rashomon: Rashomon) -> None:
    with nodes(**GPU):
        rashomon.run(*RUN, *NODES)
        assert (identity(rashomon)["device"], identity(rashomon)["version of torch"]) == ("cuda", "2.13")
        rashomon.run(*RUN, *NODES)
        rashomon.run("resume", "r", "--conditions", "aligned", "--repeat", *NODES)
    here = rashomon.run("resume", "r", "--conditions", "aligned", "--repeat", code=2)
    assert "--accept-engine" in here.stderr
    with nodes():
        others = rashomon.run("resume", "r", "--conditions", "aligned", "--repeat", *NODES, code=3)
        assert "device cpu, not cuda" in others.stderr
        rashomon.run("resume", "r", "--conditions", "aligned", "--repeat", "--accept-engine", *NODES)
    assert identity(rashomon)["device"] == "cuda"
    with RunStore.read(rashomon.workspace / "runs" / "r") as store:
        assert [engine["device"] for engine in store.engines()] == ["cuda", "cpu"]
        assert any("was accepted" in remark for remark in store.meta("remarks"))


def test_run_that_began_here_goes_on_at_nodes_with_the_same_engine(rashomon: Rashomon) -> None:
    rashomon.run(*RUN)
    before = identity(rashomon)
    with nodes():
        rashomon.run("resume", "r", "--conditions", "aligned", "--repeat", *NODES)
    assert identity(rashomon) == before
    with nodes(**GPU):
        refused = rashomon.run("resume", "r", "--conditions", "aligned", "--repeat", *NODES, code=3)
    assert "device cuda, not cpu" in refused.stderr


def test_judge_has_the_device_and_versions_of_the_nodes_that_began_to_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_: tmp_path / "cache")
    monkeypatch.setattr("app.engine.workers.cluster.node_worker.NodeWorker._lock_device", lambda *_: "")
    monkeypatch.setattr("app.engine.workers.cluster.node_worker.load_backend", lambda model, *_, **__: Strict(model))
    make_run(Workspace(tmp_path), 8, lambda number: f"Maybe {number}?")
    folder = tmp_path / "runs" / "r"

    def judge(**options: Any) -> None:
        assert Worker(Job((folder,), (str(FOUR_BIT),), workers="ray", **options)).work() == 0

    with nodes(**GPU):
        judge()
    with RunStore.open(folder) as store:
        ((name, recorded),) = store.meta("judges").items()
        store.retract(name, instance="example-0/aligned")
    assert (recorded["device"], recorded["versions"]) == ("cuda", {"torch": "2.13"})
    with nodes():
        with pytest.raises(ModelError, match="not cuda"):
            judge()
        judge(accept_engine=True)
    with RunStore.read(folder) as store:
        assert store.meta("judges")[name] == recorded
        assert {record.verdicts[name].label for record in store.records()} == {"TEXT"}
