"""Clusters as users name them: what is refused before anything is connected, and what the lists show of nodes."""

from __future__ import annotations

import importlib.util
from dataclasses import asdict
from pathlib import Path

import pytest

from app.commands.terminal.progress_display import PlainDisplay, progress_table
from app.report.progress.remaining_time import Throughput
from app.run_spec import parse_spec
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.store_types import NODES_KEY, NodeStatus
from tests.app.store.test_run_store import META
from tests.support.charts import draw_sources
from tests.support.command import Rashomon
from tests.support.toy import toy_instances

BATCH = ("--batch", "--benchmark", "cmc-bench", "--display", "none")


@pytest.fixture(scope="module")
def rashomon(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    folder = tmp_path_factory.mktemp("workers")
    draw_sources(folder / "sources")
    command = Rashomon(folder)
    command.run("build", "cmc-bench", "--source", folder / "sources")
    return command


@pytest.mark.parametrize(
    ("model", "workers"),
    [
        ("policy:uniform", "a-host"),
        ("policy:uniform", "ray://"),
        ("policy:uniform", "ray://host"),
        ("policy:uniform", "ray://host:0"),
        ("policy:uniform", "ray://user@host:10001"),
        ("policy:uniform", "http://host:10001"),
        ("openai:gpt-4o", "ray"),
        ("endpoint:m@http://127.0.0.1:1/v1", "ray://host:10001"),
    ],
)
def test_what_no_cluster_can_answer_is_refused_at_once(rashomon: Rashomon, model: str, workers: str) -> None:
    rashomon.run(*BATCH, "--model", model, "--workers", workers, code=2)
    assert rashomon.json("runs") == []


@pytest.mark.parametrize(
    "more",
    [
        ("--workers", "ray"),
        ("--writer", "openai:gpt-4o", "--workers", "ray"),
        ("--writer", "org/name", "--workers", "a-host"),
    ],
)
def test_construction_without_a_model_for_the_cluster_is_refused(rashomon: Rashomon, more: tuple[str, ...]) -> None:
    out = rashomon.home / "refused"
    rashomon.run("build", "cmc-bench", "--source", rashomon.home / "sources", "--out", out, *more, code=2)
    assert not out.exists()


@pytest.mark.parametrize("judge", ["match", "openai:gpt-4o"])
def test_judges_without_a_model_for_the_cluster_are_refused(rashomon: Rashomon, judge: str) -> None:
    rashomon.run(*BATCH, "--model", "policy:uniform", "--name", "judged", "--limit", "2")
    rashomon.run("judge", "judged", "--judge", judge, "--workers", "ray", "--display", "none", code=2)


def test_a_spec_of_somebody_else_brings_no_cluster_along(rashomon: Rashomon) -> None:
    spec = rashomon.home / "spec.toml"
    spec.write_text('benchmark = "cmc-bench"\nmodel = "policy:uniform"\nworkers = "ray://host.example:10001"\n')
    refused = rashomon.run("--batch", spec, code=2)
    assert "--allow-address ray://host.example:10001" in refused.stderr


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_the_extra_is_named(rashomon: Rashomon) -> None:
    refused = rashomon.run(*BATCH, "--model", "policy:uniform", "--workers", "ray", code=2)
    assert "rashomon[ray]" in refused.stderr


def test_workers_are_no_part_of_a_run(rashomon: Rashomon) -> None:
    spec = {"benchmark": "cmc-bench", "model": "policy:uniform"}
    (alone,), (spread,) = (parse_spec(spec, more, "a test").runs() for more in ({}, {"workers": "ray"}))
    assert alone == spread
    rashomon.run(*BATCH, "--model", "policy:uniform", "--workers", "none", "--name", "here", "--limit", "2")
    assert "workers" not in (rashomon.workspace / "runs" / "here" / "spec.toml").read_text()


def test_nodes_of_a_run_are_displayed(tmp_path: Path) -> None:
    nodes = [
        NodeStatus("mac-1", "ready", answers=1200, errors=3, per_second=3.14, peak_memory=2 * 10**9),
        NodeStatus("mac-2", "refused", "mlx 0.1, \x1b[31mnot 0.32"),
        *(NodeStatus(f"more-{number}", "ready", answers=10, per_second=1.0) for number in range(20)),
    ]
    RunStore.create(tmp_path, META, toy_instances(2)).close()
    with RunStore.open(tmp_path) as store:
        store.set_meta(NODES_KEY, [asdict(node) for node in nodes])
    run = read_summary(tmp_path)
    assert run.nodes == tuple(nodes)
    line = PlainDisplay().line(run, Throughput())
    caption = str(progress_table(run, Throughput()).caption)
    for text in (line, caption):
        assert "mac-1: 1,200 answers, 3 errors, 3.14 answers/s, 2.00 GB peak" in text
        assert "mac-2: refused" in text
        assert "14 more nodes: 140 answers, 14 answers/s" in text
        assert "\x1b" not in text
