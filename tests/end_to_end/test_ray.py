"""Runs on real Ray clusters of this machine: the same exports as without, whatever nodes do. They need the extra ray."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from tests.support.command import ROOT, Rashomon
from tests.support.demo import FOUR_BIT
from tests.support.ray_nodes import RayNodes, ray_nodes

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

RUN = "spread"
BATCH = ("--batch", "--benchmark", "cmc-bench", "--name", RUN, "--display", "json")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ray") / "cmc-bench"
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
    (run,) = json.loads(rashomon.process("runs", "--json").stdout)
    return dict(run)


def work(rashomon: Rashomon) -> dict[str, int]:
    """The counts of prompts and tokens of the run's only session."""
    import sqlite3

    with sqlite3.connect(rashomon.workspace / "runs" / RUN / "run.sqlite") as database:
        ((text,),) = database.execute("SELECT value FROM meta WHERE key = 'work'").fetchall()
    (counts,) = json.loads(text)
    return dict(counts)


@pytest.fixture(scope="module")
def expected(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """The demo model's run on this machine alone."""
    rashomon = home(built, tmp_path_factory.mktemp("alone"))
    rashomon.process(*BATCH, "--model", FOUR_BIT)
    return rashomon


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_clusters_of_any_size_export_what_one_machine_does(
    workers: int, built: Path, expected: Rashomon, tmp_path: Path
) -> None:
    base = Rashomon(tmp_path).environment
    with ray_nodes(base, tmp_path, workers=workers) as nodes:
        rashomon = home(built, tmp_path, nodes)
        rashomon.process(*BATCH, "--model", FOUR_BIT, "--workers", "ray")
    assert export(rashomon) == export(expected)
    alone, spread = work(expected), work(rashomon)
    print(workers, summary(rashomon)["nodes"], alone, spread)
    assert spread["computed_tokens"] <= 1.10 * max(alone["distinct_tokens"], alone["computed_tokens"])
    counts = [node["answers"] for node in summary(rashomon)["nodes"]]
    assert sum(counts) == summary(rashomon)["total"]
    assert len(counts) == workers
