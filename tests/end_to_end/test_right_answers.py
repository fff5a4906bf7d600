"""The demo model end to end, from held-out pictures to the table: killed, resumed, and still correct."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.app.commands.running.test_batch_command import states, wait_until
from tests.support.command import Rashomon, kill_all
from tests.support.demo import DEMO, FOUR_BIT


def done(rashomon: Rashomon) -> int:
    return states(rashomon).get("scenes", ("", 0, 0))[1]


def more_than(rashomon: Rashomon, count: int) -> bool:
    return done(rashomon) > count


def samples(rashomon: Rashomon) -> list[dict[str, Any]]:
    out = rashomon.home / "out"
    rashomon.run("export", "scenes", "--canonical", "--format", "json", "--out", out)
    return [json.loads(line) for line in (out / "samples.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.slow
def test_run_killed_twice_has_correct_answers(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "clash", "--source", f"rows={DEMO / 'held_out' / 'clash'}")
    options = ("--batch", "--benchmark", "clash", "--model", FOUR_BIT, "--limit", "6", "--max-tokens", "16")
    for _ in range(2):
        process = rashomon.start(
            *options, "--judge", "strict", "--judge", "relaxed", "--display", "none", "--name", "scenes"
        )
        wait_until(partial(more_than, rashomon, done(rashomon) + 3))
        kill_all(process)
    rashomon.run("resume", "scenes", "--display", "none")
    answered = samples(rashomon)
    assert len(answered) == 24
    right = []
    for sample in answered:
        condition = sample["condition"]
        answer = sample["references"]["image letter" if condition.startswith("mc") else "image"][0]
        if condition.endswith("original"):
            right.append(answer in sample["steps"][-1]["text"])
    assert sum(right) / len(right) >= 0.75
