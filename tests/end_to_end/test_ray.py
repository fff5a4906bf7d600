"""Runs on real Ray clusters of this machine: the same exports as without, whatever nodes do. They need the extra ray."""

from __future__ import annotations

import json
import platform
import shutil
import signal
import sqlite3
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from app.engine.workers.cluster.node_worker import SECRETS
from assets.demo.recipe import demo_held_out
from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from tests.app.commands.running.test_batch_command import wait_until
from tests.support.command import ROOT, Rashomon, free_port
from tests.support.demo import BF16, FOUR_BIT
from tests.support.json_output import json_result
from tests.support.ray_nodes import RayNodes, environment_of, family_of, hang, is_running, ray_nodes

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

RUN = "spread"
SLOW = {"seconds": (0.0, 0.03)}
"""Orders to nodes: time enough between two answers for something to happen."""
BATCH = ("--batch", "--benchmark", "cmc-bench", "--name", RUN, "--display", "none")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_charts(tmp_path_factory.mktemp("ray") / "cmc-bench")


def build_charts(folder: Path) -> Path:
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", source)], folder, BuildOptions())
    return folder


def home(built: Path, folder: Path, nodes: RayNodes | None = None, **variables: str) -> Rashomon:
    """A home with the build; its commands know the cluster."""
    if not (folder / "workspace").exists():
        shutil.copytree(built, folder / "workspace" / "benchmarks" / "cmc-bench")
    cluster = {} if nodes is None else {**nodes.environment, "RAY_ADDRESS": nodes.address}
    own = Rashomon(folder).environment
    return Rashomon(folder, variables={**{k: v for k, v in cluster.items() if k not in own}, **variables})


def export(rashomon: Rashomon) -> dict[str, bytes]:
    out = rashomon.home / "export"
    shutil.rmtree(out, ignore_errors=True)
    rashomon.run("export", RUN, "--canonical", "--out", out)
    return {path.name: path.read_bytes() for path in out.iterdir()}


def summary(rashomon: Rashomon) -> dict[str, Any]:
    (run,) = json_result(rashomon.process("runs", "--json").stdout)
    return dict(run)


def work(rashomon: Rashomon) -> dict[str, int]:
    """The counts of prompts and tokens of the run's only session."""
    with sqlite3.connect(rashomon.workspace / "runs" / RUN / "run.sqlite") as database:
        ((text,),) = database.execute("SELECT value FROM meta WHERE key = 'work'").fetchall()
    (counts,) = json.loads(text)
    return dict(counts)


def answered(rashomon: Rashomon) -> int:
    """The number of durable answers."""
    database = rashomon.workspace / "runs" / RUN / "run.sqlite"
    if not database.exists():
        return 0
    with sqlite3.connect(database) as connection:
        return int(connection.execute("SELECT count(*) FROM generation WHERE accepted").fetchone()[0])


def export_alone(built: Path, folder: Path) -> dict[str, bytes]:
    """The export of the policy's run on this machine alone."""
    rashomon = home(built, folder)
    rashomon.run(*BATCH, *POLICY)
    return export(rashomon)


LARGE = ("--model", str(FOUR_BIT), "--limit", "250")
"""2,000 requests, of 250 charts."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's benchmark of 252 charts."""
    folder = tmp_path_factory.mktemp("large")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_held_out, "SEEN_EACH", 17)
        demo_held_out.write_charts(folder / "charts")
    get_benchmark("cmc-bench").build([("rows", str(folder / "charts"))], folder / "build", BuildOptions())
    return folder / "build"


@pytest.fixture(scope="module")
def expected(large: Path, tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """The demo model's run on this machine alone."""
    rashomon = home(large, tmp_path_factory.mktemp("alone"))
    rashomon.process(*BATCH, *LARGE)
    return rashomon


@pytest.fixture(scope="module")
def spread(request: pytest.FixtureRequest, large: Path, tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """The demo model's run on a cluster of that many nodes."""
    folder = tmp_path_factory.mktemp("spread")
    with ray_nodes(Rashomon(folder).environment, folder, workers=request.param) as nodes:
        rashomon = home(large, folder, nodes)
        rashomon.process(*BATCH, *LARGE, "--workers", "ray")
    counts = [node["answers"] for node in summary(rashomon)["nodes"]]
    assert sum(counts) == summary(rashomon)["total"] == 2000
    assert len(counts) == request.param
    return rashomon


@pytest.mark.parametrize("spread", [1, 2, 4], indirect=True)
def test_clusters_of_any_size_export_what_one_machine_does(spread: Rashomon, expected: Rashomon) -> None:
    assert export(spread) == export(expected)


@pytest.mark.parametrize("spread", [1, 2, 4], indirect=True)
def test_nodes_compute_little_more_than_the_distinct_tokens(spread: Rashomon, expected: Rashomon) -> None:
    """Proofs included."""
    print(work(expected), work(spread))
    assert work(spread)["computed_tokens"] <= 1.10 * work(expected)["distinct_tokens"]


POLICY = ("--model", "policy:uniform")


def test_machine_that_is_no_node_connects_to_the_head(built: Path, tmp_path: Path) -> None:
    """Through Ray's client; the keys of neither machine reach a worker."""
    key = "sk-this-must-not-travel"
    slow = Rashomon(tmp_path).ordered(**SLOW).environment
    with ray_nodes({**slow, "OPENAI_API_KEY": key}, tmp_path, workers=2) as nodes:
        rashomon = home(built, tmp_path, nodes, RASHOMON_ENDPOINT_KEY=key)
        process = rashomon.start(*BATCH, *POLICY, "--workers", nodes.client_address)
        wait_until(lambda: answered(rashomon) > 5)
        keys_known = [environment_of(pid).keys() & set(SECRETS) for pid in nodes.actors()]
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert summary(rashomon)["nodes"]
        wait_until(lambda: not nodes.actors())
        rashomon.process("resume", RUN, "--repeat", "--workers", nodes.client_address, "--display", "none")
    assert all("RASHOMON_ENDPOINT_KEY" not in names for names in keys_known)
    assert export(rashomon) == export_alone(built, tmp_path / "alone")


def test_cluster_without_authentication_is_refused_unless_allowed(built: Path, tmp_path: Path) -> None:
    with ray_nodes(Rashomon(tmp_path).environment, tmp_path, workers=1, token=False) as nodes:
        rashomon = home(built, tmp_path, nodes)
        refused = rashomon.process(*BATCH, *POLICY, "--workers", "ray", code=3)
        assert "--allow-open-cluster" in refused.stderr
        assert answered(rashomon) == 0
        rashomon.process(*BATCH, *POLICY, "--workers", "ray", "--allow-open-cluster")


def test_wrong_heads_are_named(built: Path, tmp_path: Path) -> None:
    rashomon = home(built, tmp_path)
    nobody = f"ray://127.0.0.1:{free_port()}"
    assert nobody in rashomon.process(*BATCH, *POLICY, "--workers", nobody, code=3).stderr
    with ray_nodes(Rashomon(tmp_path).environment, tmp_path, workers=1) as nodes:
        stranger = home(built, tmp_path, nodes, RAY_AUTH_TOKEN="0" * 64)
        assert "token" in stranger.process(*BATCH, *POLICY, "--workers", nodes.client_address, code=3).stderr
        without = home(built, tmp_path)
        refused = without.process(*BATCH, *POLICY, "--workers", nodes.client_address, code=3).stderr
        assert "lacks its token" in refused


def hub_cache(folder: Path, *models: Path) -> dict[str, str]:
    """A Hugging Face cache with each of ``models`` as the model demo/model."""
    for model in models:
        repository = folder / "models--demo--model"
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / "main").write_text("1" * 40)
        shutil.copytree(model, repository / "snapshots" / ("1" * 40))
    folder.mkdir(exist_ok=True)
    return {"HF_HUB_CACHE": str(folder)}


def test_node_with_other_weights_is_refused_and_one_without_gets_them(built: Path, tmp_path: Path) -> None:
    right = hub_cache(tmp_path / "right", FOUR_BIT)
    with ray_nodes({**Rashomon(tmp_path).environment, **right}, tmp_path, workers=1) as nodes:
        nodes.add(**hub_cache(tmp_path / "other", BF16))
        nodes.add(**hub_cache(tmp_path / "empty"), XDG_CACHE_HOME=str(tmp_path / "own-cache"))
        rashomon = home(built, tmp_path, nodes, **right)
        rashomon.process(*BATCH, "--model", "demo/model", "--limit", "60", "--workers", "ray")
        states = [(node["state"], "weights digest" in node["note"]) for node in summary(rashomon)["nodes"]]
    assert sorted(states) == [("failed", True), ("ready", False), ("ready", False)]
    (copy,) = (tmp_path / "own-cache" / "rashomon" / "models").iterdir()
    assert copy.is_dir(), "the model came from the driver"


@pytest.mark.parametrize("by_client", [False, True])
def test_hung_worker_is_replaced(by_client: bool, built: Path, tmp_path: Path) -> None:
    with ray_nodes(Rashomon(tmp_path).ordered(**SLOW).environment, tmp_path, workers=2) as nodes:
        rashomon = home(built, tmp_path, nodes)
        process = rashomon.start(*BATCH, *POLICY, "--workers", nodes.client_address if by_client else "ray")
        wait_until(lambda: answered(rashomon) > 20, 300)
        victim = nodes.actors()[0]
        hang(victim)
        _, err = process.communicate(timeout=200)
        assert process.returncode == 0, err
        wait_until(lambda: not is_running(victim), 30)
        rashomon.process("resume", RUN, "--repeat", "--workers", "ray", "--display", "none")
        assert all(node["answers"] for node in summary(rashomon)["nodes"]), "its CPU is free again"
    assert export(rashomon) == export_alone(built, tmp_path / "alone")


@pytest.mark.parametrize("interrupted", [False, True])
def test_own_cluster_listens_on_loopback_and_leaves_nothing(interrupted: bool, built: Path, tmp_path: Path) -> None:
    """Neither processes nor files, also of images and of Ray, nor a token."""
    if shutil.which("ss") is None:
        pytest.skip("the addresses of listening sockets need ss")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before = ray_folders()
    rashomon = home(built, tmp_path, None, TMPDIR=str(temporary))
    rashomon = Rashomon(rashomon.home, {"seconds": (0.05, 0.1)}, rashomon.variables)
    process = rashomon.start(*BATCH, "--model", FOUR_BIT, "--limit", "20", "--workers", "ray")
    wait_until(lambda: answered(rashomon) > 5, 200)
    family = family_of(process.pid)
    addresses = listening(family)
    assert len(addresses) >= 3
    assert set(addresses) <= {"127.0.0.1", "[::ffff:127.0.0.1]", "[::1]"}
    assert list(temporary.glob("rashomon-media-*"))
    assert len(ray_folders() - before) == 1
    if interrupted:
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=200)
    assert process.returncode == (130 if interrupted else 0), err
    assert "Traceback" not in err
    wait_until(lambda: not any(map(is_running, family)), 30)
    assert not list(temporary.glob("rashomon-media-*"))
    assert ray_folders() == before
    assert not (rashomon.home / ".ray").exists()


def ray_folders() -> set[Path]:
    return set(Path("/tmp").glob("rashomon-ray-*"))


def listening(pids: list[int]) -> list[str]:
    """The addresses on which processes take connections."""
    sockets = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True).stdout.splitlines()
    mine = (line for line in sockets if any(f"pid={pid}," in line for pid in pids))
    return [line.split()[3].rpartition(":")[0] for line in mine]


def test_node_without_rashomon_is_named_and_the_others_answer(built: Path, tmp_path: Path) -> None:
    with ray_nodes(Rashomon(tmp_path).ordered(**SLOW).environment, tmp_path, workers=1) as nodes:
        lacking = Rashomon(tmp_path).ordered(missing=["app"]).environment
        nodes.add(**{name: lacking[name] for name in ("PYTHONPATH", "RASHOMON_TEST_ORDERS")})
        rashomon = home(built, tmp_path, nodes)
        rashomon.process(*BATCH, *POLICY, "--workers", "ray")
        notes = {node["state"]: node["note"] for node in summary(rashomon)["nodes"]}
        nodes.remove(nodes.nodes[0])
        alone = rashomon.process("resume", RUN, "--repeat", "--workers", "ray", "--display", "none", code=3)
    assert notes.keys() == {"ready", "failed"}
    for message in (notes["failed"], alone.stderr):
        assert "app is missing there" in message


@pytest.mark.parametrize(("ray", "python"), [("2.59.0", ""), ("", "3.10.1")])
def test_another_version_of_ray_or_python_is_named(ray: str, python: str, built: Path, tmp_path: Path) -> None:
    """At this machine, and at a node that wants to join."""
    versions = (ray or version("ray"), python or platform.python_version())
    with ray_nodes(Rashomon(tmp_path).environment, tmp_path, workers=1) as nodes:
        other = home(built, tmp_path, nodes)
        other = Rashomon(other.home, {"ray_versions": versions}, other.variables)
        for workers in (nodes.client_address, "ray"):
            refused = other.process(*BATCH, *POLICY, "--workers", workers, code=3)
            assert ray + python in refused.stderr
        with pytest.raises(AssertionError, match=ray + python):
            nodes.add(**{name: other.environment[name] for name in ("PYTHONPATH", "RASHOMON_TEST_ORDERS")})


def test_pytorch_answers_on_nodes_as_on_one_machine(built: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    model = ("--model", f"cuda:{BF16}@fp32@cpu", "--limit", "4")
    with ray_nodes(Rashomon(tmp_path).environment, tmp_path, workers=2) as nodes:
        rashomon = home(built, tmp_path, nodes)
        rashomon.process(*BATCH, *model, "--workers", "ray")
        assert [node["state"] for node in summary(rashomon)["nodes"]] == ["ready", "ready"]
    alone = home(built, tmp_path / "alone")
    alone.process(*BATCH, *model)
    assert export(rashomon) == export(alone)
