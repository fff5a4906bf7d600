"""Judges and constructions with a model on the nodes of a real Ray cluster: the results of one machine. They need Ray."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.test_ray import BATCH, POLICY, RUN, build_charts, home, summary
from tests.support.command import ROOT, Rashomon
from tests.support.demo import BF16, FOUR_BIT
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
            construction = json.loads(rashomon.process(*CONSTRUCTION, *more).stdout)
            rashomon.run(*BATCH, *POLICY, "--limit", "20")
            rashomon.process("judge", RUN, "--judge", FOUR_BIT, "--display", "none", *more)
            results.append((construction["digest"], verdicts(rashomon)))
        nodes_of_judge = summary(rashomon)["nodes"]
        assert not nodes.actors(), "no worker is left behind"
    assert results[0] == results[1]
    assert all(len(by_judge) == 2 for by_judge in results[0][1].values())
    assert [node["judge"].split("@")[0] != "" for node in nodes_of_judge] == [True, True]
    assert all(node["answers"] for node in nodes_of_judge)
