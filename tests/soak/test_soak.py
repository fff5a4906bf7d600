"""A minute of the soak ends without a violation, and a planted bug ends it at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.soak.actions import draw
from tests.soak.commands import ROOT
from tests.soak.ledger import Ledger, Step


def soak(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.soak", *options, "--folder", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_minute_of_use_violates_nothing(tmp_path: Path) -> None:
    done = soak(tmp_path, "0.012", "--seed", "60")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "summary.json").read_text())["steps"] > 0


@pytest.mark.slow
def test_planted_bug_is_found_and_replayed(tmp_path: Path) -> None:
    planted = ("--fault", "wrong-exit-code", "--only", "wrong", "--steps", "1")
    done = soak(tmp_path / "drawn", "1", *planted)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "exit code 1, not one of [2]" in done.stdout
    log = tmp_path / "drawn" / "log.jsonl"
    assert soak(tmp_path / "replayed", "1", "--replay", str(log)).returncode == 0


def test_steps_are_those_of_their_seed_and_survive_the_log() -> None:
    for number in range(50):
        ledger = Ledger(number=number)
        step = draw(Random(f"7/{number}"), ledger)
        assert step == draw(Random(f"7/{number}"), ledger)
        assert Step.parse(step.line(step=number)) == step
