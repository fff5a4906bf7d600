"""Models as judges in real processes: one behind mlx-vlm's own server, one of this machine; both only ever say a label."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.cmc_bench import cmc_rubric
from tests.app.commands.running.test_batch_command import wait_until
from tests.app.engine.test_judge_faults import make_run
from tests.support.command import INJECTED, ROOT, Rashomon, kill_all
from tests.support.tiny_qwen3 import build_tiny_lm, build_tiny_vlm
from tests.support.trust import agree_to

TEXTS = [cmc_rubric._PROMPT]  # so that a prompt is a few hundred tokens, as with a real tokenizer
LABELS = {"IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN"}
COUNTS = [24, pytest.param(200, marks=pytest.mark.slow)]


def answer(number: int) -> str:
    return f"Number {number} it was {1950 + number % 70}, I think."


@pytest.fixture
def rashomon(tmp_path: Path) -> Rashomon:
    return Rashomon(tmp_path)


@pytest.fixture
def server(tmp_path: Path, rashomon: Rashomon) -> Iterator[str]:
    """`python -m mlx_vlm server` with a tiny vision-language model of random weights."""
    served = tmp_path / "served"
    build_tiny_vlm(served, TEXTS, quantise=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **rashomon.environment,
        "RASHOMON_TEST_ORDERS": json.dumps({"structured_without_metal": True}),
        "PYTHONPATH": os.pathsep.join([str(INJECTED), str(ROOT)]),
    }
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mlx_vlm", "server", "--model", served, "--host", "127.0.0.1", "--port", str(port)],
            env=environment,
            cwd=tmp_path,
            stdout=log,
            stderr=log,
        )
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                    break
                except OSError:
                    assert process.poll() is None, (tmp_path / "server.log").read_text()
                    assert time.monotonic() < until
                    time.sleep(0.2)
            agree_to(f"http://127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(20)


def labels(rashomon: Rashomon, judge: str) -> list[str | None]:
    with RunStore.read(rashomon.workspace / "runs" / "r") as store:
        (key,) = {j for p in store.progress() for j in p.judged if j.startswith(judge)}
        verdicts = [record.verdicts[key] for record in store.records()]
    assert {verdict.status for verdict in verdicts} == {"labelled"}
    assert all(verdict.raw and json.loads(verdict.raw) == {"label": verdict.label} for verdict in verdicts)
    return [verdict.label for verdict in verdicts]


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_a_judge_behind_mlx_vlms_server_only_ever_gives_labels(rashomon: Rashomon, server: str, count: int) -> None:
    make_run(Workspace(rashomon.workspace), count, answer)
    judge = f"endpoint:{rashomon.home / 'served'}@{server}"
    rashomon.run("judge", "r", "--judge", judge, "--concurrency", "1", "--timeout", "60")
    result = labels(rashomon, "endpoint:")
    assert len(result) == count
    assert set(result) <= LABELS


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.slow
def test_a_judge_of_this_machine_labels_the_same_in_a_batch_and_one_by_one(rashomon: Rashomon, count: int) -> None:
    make_run(Workspace(rashomon.workspace), count, answer)
    build_tiny_lm(rashomon.home / "judge", TEXTS, seed=2, quantise=False)
    rashomon.run("judge", "r", "--judge", rashomon.home / "judge")
    together = labels(rashomon, "judge@")
    assert len(together) == count
    assert set(together) <= LABELS
    assert count < 100 or len(Counter(together)) > 1, "it reads what it is to label"
    make_run(Workspace(rashomon.home / "alone"), count, answer)
    alone = Rashomon(rashomon.home, {"text_width": 1}, {"RASHOMON_WORKSPACE": str(rashomon.home / "alone")})
    alone.run("judge", "r", "--judge", rashomon.home / "judge")
    with RunStore.read(rashomon.home / "alone" / "runs" / "r") as store:
        one_by_one = [record.verdicts["judge@cmc-bench-2"].label for record in store.records()]
    assert together == one_by_one
    shown = rashomon.run("show", "r", "--judge", rashomon.home / "judge", "--table", "main").stdout
    assert "Labels by judge@cmc-bench-2." in shown
    assert "How judge@cmc-bench-2 agrees with people or with an API judge is unknown" in " ".join(shown.split())


@pytest.mark.slow
def test_a_run_that_waits_for_a_judge_of_this_machine_is_not_done(built: Path, tmp_path: Path) -> None:
    """The judge comes after all runs of the model are answered; a kill before that leaves them all unjudged."""
    shutil.copytree(built, tmp_path / "workspace" / "benchmarks")
    rashomon, reached = Rashomon(tmp_path), tmp_path / "reached"
    build_tiny_lm(tmp_path / "judge", TEXTS, quantise=False)
    command = ["--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--limit", "2"]
    command += ["--prompt-set", "paper", "--prompt-set", "conflict-aware", "--judge", str(tmp_path / "judge")]

    def states() -> list[tuple[str, bool]]:
        parsed = rashomon.json("runs")
        return sorted((run["state"], run["done"] == run["total"]) for run in parsed)

    slow = rashomon.ordered(holds={"function": "app.engine.model_judging:judge_answers", "file": str(reached)})
    process = slow.start(*command)
    wait_until(reached.exists)
    assert states() == [("judging", True), ("queued", True)]
    kill_all(process)
    assert states() == [("interrupted", True)] * 2, "the second waited for its judge in a process that is gone"
    rashomon.run(*command)
    assert states() == [("done", True)] * 2


@pytest.mark.slow
def test_a_vision_language_model_judges_as_well(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    make_run(Workspace(rashomon.workspace), 40, answer)
    build_tiny_vlm(rashomon.home / "sees", TEXTS, quantise=True)
    rashomon.run("judge", "r", "--judge", rashomon.home / "sees")
    assert set(labels(rashomon, "sees@")) <= LABELS


@pytest.mark.slow
def test_a_judge_that_dies_for_want_of_memory_goes_on_narrower(rashomon: Rashomon) -> None:
    make_run(Workspace(rashomon.workspace), 24, answer)
    build_tiny_lm(rashomon.home / "judge", TEXTS, quantise=False)
    wide = rashomon.ordered(capacity=8, dies={"how": "SIGKILL", "above": 4})
    stderr = wide.run("judge", "r", "--judge", rashomon.home / "judge").stderr
    assert stderr.count("; restart ") == 1, stderr
    assert len(labels(rashomon, "judge@")) == 24
    with RunStore.read(rashomon.workspace / "runs" / "r") as store:
        assert {record.answer.finish_reason for record in store.records() if record.answer} == {"stop"}
        assert store.engines() == [{"engine": "imported"}], "a judge has answered nothing"
