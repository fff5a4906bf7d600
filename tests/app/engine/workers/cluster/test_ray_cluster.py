"""Parts of the cluster through Ray that need no Ray."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from app.engine.workers.cluster.cluster_interface import Member
from app.engine.workers.cluster.ray_cluster import RayCluster, RayWorker, _lost, places
from app.engine.workers.cluster.ray_connection import own_cluster_folder, ray_environment
from benchmarks.errors import ModelError
from tests.support.local_cluster import job_of


def node(number: int, name: str, **resources: float) -> dict[str, Any]:
    """A node as Ray describes it."""
    return {"NodeID": f"{number}" * 56, "NodeManagerHostname": name, "Resources": resources}


HEAD, GPUS, MAC, NOTHING = (
    node(1, "head", CPU=8),
    node(2, "gpus", CPU=8, GPU=2),
    node(3, "mac", CPU=8),
    node(4, "none"),
)


def test_a_node_is_a_place_and_so_is_each_gpu_of_a_model_that_uses_them() -> None:
    nodes = [HEAD, GPUS, MAC, NOTHING]
    assert [place.name for place in places(nodes, uses_gpus=False, only_gpus=False)] == ["head", "gpus", "mac"]
    everywhere = places(nodes, uses_gpus=True, only_gpus=False)
    assert [place.name for place in everywhere] == ["head", "gpus GPU 0", "gpus GPU 1", "mac"]
    only = places(nodes, uses_gpus=True, only_gpus=True)
    assert only == [Member(f"{'2' * 56}/{gpu}", f"gpus GPU {gpu}", has_gpu=True) for gpu in range(2)]
    assert {place.node for place in only} == {"2" * 56}


def test_nodes_of_one_name_are_told_apart() -> None:
    names = [place.name for place in places([HEAD, node(5, "head", CPU=1)], uses_gpus=False, only_gpus=False)]
    assert names == ["head 111111", "head 555555"]


@pytest.mark.parametrize(
    ("text", "crashed", "out_of_memory"),
    [
        ("The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR", True, False),
        ("The actor is dead because its node has died. Node Id: abc", False, False),
        ("Task was killed due to the node running low on memory.", True, True),
        ("The actor is unavailable: RPC error", False, False),
        ("The actor died because of an error: ModuleNotFoundError: No module named 'app'", False, False),
    ],
)
def test_only_a_process_that_died_may_be_a_requests_fault(text: str, crashed: bool, out_of_memory: bool) -> None:
    error = _lost(Exception(text))
    assert (error.crashed, error.out_of_memory) == (crashed, out_of_memory)
    assert error.for_good is ("No module" in text)


@pytest.mark.parametrize("allowed", [False, True])
def test_ray_that_does_not_tell_whether_it_requires_a_token_is_named(
    allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = ModuleType("ray")
    setattr(ray, "__version__", "9.1")  # noqa: B010
    for name in [name for name in sys.modules if name.startswith("ray.")]:  # another test's, where Ray is installed
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", ray)
    report = str(RayWorker(allowed).load(job_of("policy:random")))
    assert ("Ray 9.1" in report) is not allowed


def test_folder_for_files_is_the_users_while_ray_starts_and_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    folder = own_cluster_folder()
    with ray_environment(folder):
        assert Path(os.environ["RAY_TMPDIR"]) == folder.path
    assert folder.path.parent == tmp_path
    assert os.environ["RAY_TMPDIR"] == str(tmp_path)
    folder.remove()
    assert not list(tmp_path.iterdir())


def test_folder_for_files_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_folder = tmp_path / "file"
    no_folder.touch()
    monkeypatch.setenv("RAY_TMPDIR", str(no_folder))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(ModelError, match=str(no_folder)):
        RayCluster("ray", ["policy:random"])
