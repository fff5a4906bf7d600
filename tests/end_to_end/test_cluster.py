"""Beyond one machine: a model that a real server serves, asked by many calls at once; and a run that is copied elsewhere."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.parity.model_probing import ProbeOptions
from app.parity.parity_report import compare_runs
from app.store.workspace import Workspace
from benchmarks.build import Build, BuildOptions
from benchmarks.registry import get_benchmark
from mlx_backends.base import Backend
from mlx_backends.engine_registry import load_backend
from mlx_backends.options import RemoteOptions
from tests.app.commands.running.test_batch_command import states, wait_until
from tests.support import parity
from tests.support.command import ROOT, Rashomon, kill_all
from tests.support.demo import BF16, FOUR_BIT
from tests.support.fp32 import in_fp32
from tests.support.served import kill_group, served, served_by_process
from tests.support.tiny_qwen3 import build_tiny_vlm

OPTIONS = ("--benchmark", "cmc-bench", "--max-tokens", "12", "--display", "none")

ONE_ROW = ("--max-num-seqs", "1")
"""mlx-vlm 0.7.10's server mixes up what it answers together, of a Qwen3-VL: so it takes many calls, and answers one at a time."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's charts, built."""
    folder = tmp_path_factory.mktemp("cluster") / "cmc-bench"
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", source)], folder, BuildOptions())
    return folder


@pytest.fixture
def rashomon(built: Path, tmp_path: Path) -> Rashomon:
    shutil.copytree(built, tmp_path / "workspace" / "benchmarks" / "cmc-bench")
    return Rashomon(tmp_path)


def parity_report(rashomon: Rashomon, a: str, b: str, *more: str) -> dict[str, Any]:
    report: dict[str, Any] = rashomon.json("parity", a, b, *more)["pair"]
    return report


def more_than(rashomon: Rashomon, run: str, count: int) -> bool:
    return states(rashomon).get(run, ("", 0, 0))[1] > count


def test_served_model_resumed_after_kill_matches_the_direct_backend(rashomon: Rashomon, tmp_path: Path) -> None:
    """Greedy, in fp32; the client is killed, then the server goes away and another one comes in its place."""
    model = tmp_path / "fp32"
    shutil.copytree(BF16, model)
    in_fp32(model)
    rashomon.run("--batch", *OPTIONS, "--model", model, "--limit", "6", "--name", "direct", "--exact")
    with served(model, tmp_path / "server.log", None, *ONE_ROW) as port:
        served_model = f"endpoint:{model}@http://127.0.0.1:{port}/v1"
        options = (
            "--batch",
            *OPTIONS,
            "--model",
            served_model,
            "--limit",
            "6",
            "--name",
            "served",
            "--concurrency",
            "4",
        )
        process = rashomon.held().start(*options)
        wait_until(partial(more_than, rashomon, "served", 3))
        kill_all(process)
        before = states(rashomon)["served"][1]
        assert 3 < before < 48
    gone = rashomon.run(*options, "--attempts", "1", code=3)
    assert states(rashomon)["served"][1] == before, "no answer counts as failed because nobody serves"
    assert "the server cannot be reached" in gone.stderr
    with served(model, tmp_path / "server.log", port, *ONE_ROW):
        rashomon.run(*options)
        report = parity_report(rashomon, "direct", "served", "--probe", "4")
    assert report["answers"]["shared"] == 48
    assert report["answers"]["texts"] == 48, report["answers"]["differing"]
    stages = {stage["stage"]: stage for stage in report["stages"]}
    assert stages["asked"]["status"] == stages["batching"]["status"] == stages["judge"]["status"] == "same"
    assert "4 of 4 answers of B's run" in stages["batching"]["summary"]
    assert "48 of 48 prompt lengths are the same" in stages["tokens"]["summary"]


def test_two_servers_answer_one_run_although_one_is_killed(rashomon: Rashomon, tmp_path: Path) -> None:
    """The answers of the direct backend, greedy and in fp32; requests of the dead server go to the other at once."""
    model = tmp_path / "fp32"
    shutil.copytree(BF16, model)
    in_fp32(model)
    rashomon.run("--batch", *OPTIONS, "--model", model, "--limit", "6", "--name", "direct", "--exact")
    logs = [tmp_path / f"server-{number}.log" for number in range(2)]
    with (
        served_by_process(model, logs[0], None, *ONE_ROW) as (first, victim),
        served_by_process(model, logs[1], None, *ONE_ROW) as (second, _),
    ):
        name = f"endpoint:{model}@http://127.0.0.1:{first}/v1,http://127.0.0.1:{second}/v1"
        options = ("--model", name, "--limit", "6", "--name", "served", "--concurrency", "4")
        process = rashomon.held().start("--batch", *OPTIONS, *options)
        wait_until(partial(more_than, rashomon, "served", 3))
        kill_group(victim)
        rashomon.go_on()
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        report = parity_report(rashomon, "direct", "served", "--probe", "0")
    assert all("POST /v1/chat/completions" in log.read_text() for log in logs), "both had requests"
    assert report["answers"]["shared"] == report["answers"]["texts"] == 48, report["answers"]["differing"]


def test_parity_names_the_fault_of_a_mixed_up_server(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mlx-vlm 0.7.10 as it is: Qwen3-VL's rows get each other's image features where their prompts are read together."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    parity.in_this_process(monkeypatch)
    texts = ["How many apples were sold?", "According to the source, the value is 12."]
    model = in_fp32(build_tiny_vlm(tmp_path / "tiny", texts, quantise=False))
    workspace = Workspace(tmp_path / "workspace")
    shutil.copytree(built, workspace.build_folder("cmc-bench"))
    every = get_benchmark("cmc-bench").instances(Build.open(built), "paper")
    instances = [instance for instance in every if len(instance.parts) > 2][:64]
    parity.finished_run(workspace, "direct", model, instances)

    def at_once(name: str, media: Any) -> Backend:
        return load_backend(name, media, remote=RemoteOptions(concurrency=32))

    with served(model, tmp_path / "server.log") as port:
        monkeypatch.setattr(parity, "load_backend", at_once)
        parity.finished_run(workspace, "served", f"endpoint:{model}@http://127.0.0.1:{port}/v1", instances)
        runs = (workspace.runs_folder / "direct", workspace.runs_folder / "served")
        report = compare_runs(runs, ProbeOptions(48, [built]))
    assert report.answers.same < 64
    assert "A and B first differ at the batching of requests: " in report.verdict
    assert "answers of B's run are not those that B's server gives sequentially (batching)." in report.verdict
    assert "A's run" not in report.verdict


def test_copied_run_can_be_shown_compared_and_resumed(rashomon: Rashomon, tmp_path: Path) -> None:
    model = ("--model", str(FOUR_BIT), "--limit", "3", "--exact")
    rashomon.run("--batch", *OPTIONS, *model, "--name", "whole")
    process = rashomon.held().start("--batch", *OPTIONS, *model, "--name", "part")
    wait_until(partial(more_than, rashomon, "part", 3))
    kill_all(process)
    there = Rashomon(tmp_path / "there")
    (there.home / "elsewhere").mkdir(parents=True)
    shutil.copytree(rashomon.workspace / "benchmarks", there.home / "elsewhere" / "builds")
    for run in ("whole", "part"):
        shutil.copytree(rashomon.workspace / "runs" / run, there.workspace / "runs" / run)
    shutil.rmtree(rashomon.workspace)
    assert "whole" in there.run("show", "whole").stdout
    assert "Differences" in there.run("compare", "whole", "part").stdout
    data = ("--data", str(there.home / "elsewhere" / "builds" / "cmc-bench"))
    partly = parity_report(there, "whole", "part", "--probe", "2", *data)
    assert 3 < partly["answers"]["shared"] < 24
    assert partly["verdict"].startswith("A and B do not differ at any stage."), partly["verdict"]
    there.run("resume", "part", *data, "--display", "none")
    wholly = parity_report(there, "whole", "part", "--probe", "0")
    assert wholly["answers"]["tokens"] == wholly["answers"]["shared"] == 24
