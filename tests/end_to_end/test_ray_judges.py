"""Judges and constructions with a model on the nodes of a real Ray cluster: the results of one machine. They need Ray."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from mlx_backends.engine_registry import required_memory
from tests.end_to_end.test_ray import BATCH, POLICY, RUN, build_charts, home, summary
from tests.support.command import ROOT, Rashomon
from tests.support.demo import BF16, FOUR_BIT
from tests.support.json_output import json_result
from tests.support.ray_nodes import ray_nodes

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

LOG = ROOT / "assets" / "demo" / "log.jsonl"
CONSTRUCTION = ("build", "retrieval", "--from", LOG, "--reader", BF16, "--json")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_charts(tmp_path_factory.mktemp("ray") / "cmc-bench")


def verdicts(rashomon: Rashomon) -> dict[str, Any]:
    """What each judge says of each answer."""
    out = rashomon.home / "export"
    shutil.rmtree(out, ignore_errors=True)
    rashomon.run("export", RUN, "--canonical", "--out", out)
    rows = [json.loads(line) for line in (out / "samples.jsonl").read_text().splitlines()]
    return {row["id"]: row["verdicts"] for row in rows}


def test_nodes_judge_and_construct_what_one_machine_does(built: Path, tmp_path: Path) -> None:
    results = []
    with ray_nodes(Rashomon(tmp_path).environment, tmp_path, workers=2) as nodes:
        for place, more in ((tmp_path / "alone", ()), (tmp_path / "spread", ("--workers", "ray"))):
            place.mkdir()
            rashomon = home(built, place, nodes)
            construction = json.loads(rashomon.process(*CONSTRUCTION, *more).stdout)["result"]
            rashomon.run(*BATCH, *POLICY, "--limit", "3")
            rashomon.process("judge", RUN, "--judge", FOUR_BIT, "--display", "none", *more)
            results.append((construction["digest"], verdicts(rashomon)))
        nodes_of_judge = summary(rashomon)["nodes"]
        assert not nodes.actors(), "no worker is left behind"
    assert results[0] == results[1]
    assert all(len(by_judge) == 2 for by_judge in results[0][1].values())
    assert [node["judge"].split("@")[0] != "" for node in nodes_of_judge] == [True, True]
    assert all(node["answers"] for node in nodes_of_judge)


def spans(rashomon: Rashomon) -> dict[str, tuple[float, float]]:
    """When the first and the last answer of each run came."""
    times = {}
    for folder in (rashomon.workspace / "runs").iterdir():
        with sqlite3.connect(folder / "run.sqlite") as database:
            times[folder.name] = database.execute(
                "SELECT min(finished_at), max(finished_at) FROM generation"
            ).fetchone()
    return times


def test_models_are_placed_by_memory_and_answer_side_by_side(built: Path, tmp_path: Path) -> None:
    """A node that has room for the small model alone; the other takes the large one, then helps with the small one."""
    needs = {model: required_memory(str(model)) for model in (BF16, FOUR_BIT)}
    base = Rashomon(tmp_path)
    with ray_nodes(
        base.ordered(memory=2 * needs[BF16], seconds=(0.05, 0.06)).environment, tmp_path, workers=1
    ) as nodes:
        orders = {"memory": needs[FOUR_BIT] + 1, "seconds": (1.0, 1.1)}
        own = {"XDG_CACHE_HOME": str(tmp_path / "own-cache")}  # with a device lock of its own, as another machine
        nodes.add(RASHOMON_TEST_ORDERS=json.dumps(orders), **own)
        rashomon = home(built, tmp_path, nodes)
        batch = ("--batch", "--benchmark", "cmc-bench", "--model", FOUR_BIT, "--model", BF16, "--exact")
        out = rashomon.process(*batch, "--limit", "8", "--display", "plain", "--workers", "ray").stdout
        runs = {run["model"]: run for run in json_result(rashomon.process("runs", "--json").stdout)}
        refused = rashomon.process(*batch, "--model", tmp_path / "no-such", "--workers", "ray", code=2)
    assert "no-such" in refused.stderr
    assert [line for line in out.splitlines() if "fits on" in line]
    large, small = runs[BF16.name], runs[FOUR_BIT.name]
    assert [run["state"] for run in (large, small)] == ["done", "done"]
    assert [node["answers"] > 0 for node in large["nodes"]] == [True], "it leaves the other node to the small one"
    assert [node["answers"] > 0 for node in small["nodes"]] == [True, True], "it takes over what the large one leaves"
    assert len({node["memory"] for node in small["nodes"]}) == 2
    times = spans(rashomon)
    assert times[small["name"]][0] < times[large["name"]][1], "they answered at the same time"


def test_model_that_fits_on_no_node_is_named_before_anything_starts(built: Path, tmp_path: Path) -> None:
    memory = required_memory(str(FOUR_BIT)) + 1
    with ray_nodes(Rashomon(tmp_path).ordered(memory=memory).environment, tmp_path, workers=1) as nodes:
        rashomon = home(built, tmp_path, nodes)
        models = ("--model", FOUR_BIT, "--model", BF16)
        refused = rashomon.process("--batch", "--benchmark", "cmc-bench", *models, "--workers", "ray", code=2)
        assert str(BF16) in refused.stderr
        assert f"{FOUR_BIT} (" not in refused.stderr
        assert json_result(rashomon.process("runs", "--json").stdout) == []
