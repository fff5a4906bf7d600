"""Kills of random workers, nodes and drivers of a run on a real Ray cluster, beside nodes of no use. They need the extra ray.

``RASHOMON_CHAOS_KILLS`` sets the number of kills for each model.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections import Counter
from pathlib import Path

import pytest

from app.engine.group_commit import GROUP_SIZE
from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from tests.app.commands.running.test_batch_command import wait_until
from tests.end_to_end.test_ray import BATCH, RUN, answered, export, home, hub_cache, summary
from tests.support.command import ROOT, Rashomon, kill_all
from tests.support.demo import BF16, FOUR_BIT
from tests.support.full_disk import disk
from tests.support.ray_nodes import RayNodes, hang, kill, ray_nodes

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("RASHOMON_CHAOS_KILLS", "8"))
VICTIMS = ("worker", "worker", "worker", "node", "driver")
WORKERS = 2
PROOF = 8
"""The most requests on which a new worker proves itself, which count as calls."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chaos") / "cmc-bench"
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", source)], folder, BuildOptions())
    return folder


class Chaos:
    """A run on a cluster, and what is done to it."""

    def __init__(self, nodes: RayNodes, rashomon: Rashomon, *arguments: str) -> None:
        self.kills: Counter[str] = Counter()
        self.resumed = 0
        self._nodes = nodes
        self.rashomon = rashomon
        self._process = rashomon.start(*BATCH, *arguments, "--workers", "ray")
        self._chance = random.Random(5)
        wait_until(lambda: answered(rashomon) > 0)
        with sqlite3.connect(rashomon.workspace / "runs" / RUN / "run.sqlite") as connection:
            self.total = int(connection.execute("SELECT count(*) FROM instance").fetchone()[0])

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def await_answers(self, count: int) -> None:
        """Wait for ``count`` answers of the run, which may end before."""
        wait_until(lambda: self.ended or answered(self.rashomon) >= count, 300)

    def kill(self, victim: str) -> None:
        if victim == "worker":
            wait_until(self._nodes.actors)
            if not (pids := self._nodes.actors()):  # it may have ended by itself
                return
            kill(self._chance.choice(pids))
        elif victim == "node":
            self._nodes.remove(self._nodes.nodes.pop(0))
            self._nodes.nodes.append(self._nodes.add())
        else:
            kill_all(self._process)
            self.resume()
        self.kills[victim] += 1

    def kill_any(self) -> None:
        self.kill(self._chance.choice(VICTIMS))

    def hang(self) -> None:
        """Stop a worker for good."""
        wait_until(self._nodes.actors)
        hang(self._chance.choice(self._nodes.actors()))

    def resume(self) -> None:
        self.resumed += 1
        self._process = self.rashomon.start("resume", RUN, "--workers", "ray", "--display", "none")

    def finish(self) -> None:
        _, err = self._process.communicate(timeout=600)
        assert self._process.returncode == 0, err


@pytest.mark.parametrize("model", ["policy:uniform", "demo/model"])
def test_chaos_loses_nothing_and_repeats_only_what_was_in_flight(model: str, built: Path, tmp_path: Path) -> None:
    """Beside the nodes that are killed and replaced, there is one with other weights, and two whose disks are full."""
    calls = tmp_path / "calls"
    right = hub_cache(tmp_path / "right", FOUR_BIT)
    ordered = Rashomon(tmp_path).ordered(seconds=(0.0, 0.006 * KILLS), calls=str(calls))
    uses_weights = model == "demo/model"
    started = time.monotonic()
    with (
        disk(tmp_path / "small", "4k") as small,
        disk(tmp_path / "tiny", "32k") as tiny,
        ray_nodes({**ordered.environment, **right}, tmp_path, workers=WORKERS) as nodes,
    ):
        if uses_weights:
            nodes.add(**hub_cache(tmp_path / "other", BF16))
            nodes.add(**hub_cache(tmp_path / "empty"), XDG_CACHE_HOME=str(small))
            nodes.add(TMPDIR=str(tiny), XDG_CACHE_HOME=str(small))
        chaos = Chaos(nodes, home(built, tmp_path, nodes, **right), "--model", model)
        rashomon = chaos.rashomon
        for number in range(KILLS):
            chaos.await_answers(1 + number * (chaos.total - 100) // KILLS)
            if chaos.ended:
                break
            if number == KILLS // 2:
                chaos.hang()
            chaos.kill_any()
        chaos.finish()
    call_lines = calls.read_text().splitlines()
    again = len(call_lines) - len(set(call_lines))
    notes = [(node["state"], node["note"], node["answers"]) for node in summary(rashomon)["nodes"]]
    print(
        model,
        chaos.kills,
        f"{time.monotonic() - started:.0f} s",
        len(call_lines),
        "calls,",
        again,
        "again",
        *notes,
        sep="\n",
    )
    assert sum(chaos.kills.values()) > KILLS * 3 // 4, "most kills came too late to mean anything"
    assert len(set(call_lines)) == chaos.total
    begun = 5 + chaos.kills["worker"] + chaos.kills["node"] + 5 * chaos.kills["driver"]
    in_flight = chaos.kills["worker"] + chaos.kills["node"] + 1 + chaos.kills["driver"] * (GROUP_SIZE + 2 * WORKERS)
    assert again <= in_flight + begun * PROOF
    if uses_weights:
        problems = [note for state, note, answers in notes if state == "failed"]
        for problem in ("weights digest", "no room", "No space left"):
            assert any(problem in note for note in problems), problem
    alone = home(built, tmp_path / "alone", None, **right)
    alone.process(*BATCH, "--model", model)
    assert export(rashomon) == export(alone)
