"""Runs during which the GPU fails again and again: every answer and label as without faults, none lost and none twice.

The faults are injected into real worker processes (:mod:`tests.support.metal_injector`); no GPU is needed.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from app.engine.training.training_log import LogReader
from app.exit_codes import VERDICTS
from app.store.run_database import DATABASE
from app.store.workspace import Workspace
from tests.app.commands.running.test_score import CHOICES
from tests.app.engine.test_judge_faults import make_run
from tests.app.engine.test_judge_models import TEXTS, answer
from tests.support.command import Rashomon
from tests.support.demo import BF16, DEMO, FOUR_BIT
from tests.support.fp32 import in_fp32
from tests.support.metal_injector import MESSAGES
from tests.support.tiny_qwen3 import build_tiny_lm
from tests.support.trainings import write_training_set

ALONE, BATCHED = (60, 180), (250, 600)
"""Calls of MLX between two faults: a request alone, or the check of a batch, takes fewer, so that chance hits none twice."""

NAME = "r"


def answers(home: Path, *how: str, examples: int, benchmark: str = "cmc-bench") -> Callable[[Rashomon], None]:
    """Make a run of a benchmark's held-out set, answered by the demo's model in fp32."""
    model = in_fp32(Path(shutil.copytree(BF16, home / "model")))

    def work(rashomon: Rashomon) -> None:
        rashomon.run("build", benchmark, "--source", f"rows={DEMO / 'held_out' / benchmark}")
        asked = ("--benchmark", benchmark, "--model", str(model), "--name", NAME, "--limit", str(examples))
        rashomon.run("--batch", *asked, "--max-tokens", "8", "--restarts", "20", *how, "--display", "none")

    return work


def labels(home: Path, count: int) -> Callable[[Rashomon], None]:
    """Judge a run by a text model of this machine."""
    build_tiny_lm(home / "judge", TEXTS, quantise=False)

    def work(rashomon: Rashomon) -> None:
        make_run(Workspace(rashomon.workspace), count, answer)
        rashomon.run("judge", NAME, "--judge", home / "judge")

    return work


def check(home: Path, work: Callable[[Rashomon], None], faults: int, gap: tuple[int, int], seed: int = 1) -> None:
    """Work with and without ``faults``; the results are the same."""
    log = home / "faults"
    orders = {"metal_faults": {"log": str(log), "count": faults, "gap": gap, "seed": seed}}
    exports = []
    for name, ordered in (("clean", {}), ("faulty", orders)):
        folder = home / name
        folder.mkdir()
        rashomon = Rashomon(folder, ordered)
        work(rashomon)
        plain = Rashomon(folder)
        plain.run("export", NAME, "--canonical", "--format", "json", "--out", folder / "out")
        exports.append({path.name: path.read_bytes() for path in sorted((folder / "out").iterdir())})
        with sqlite3.connect(rashomon.workspace / "runs" / NAME / DATABASE) as connection:
            for table in ("generation", "verdict"):
                exports[-1][f"rows of {table}"] = str(
                    connection.execute(f"SELECT count(*) FROM {table}").fetchone()
                ).encode()
    lines = [line.split() for line in log.read_text().splitlines()]
    print(len(lines), Counter(kind for kind, _ in lines), Counter(site for _, site in lines))
    assert len(lines) == faults, "all of them came"
    assert faults < 50 or {kind for kind, _ in lines} == set(MESSAGES)
    assert exports[0] == exports[1]


@pytest.mark.parametrize(
    ("how", "faults", "examples", "gap"),
    [
        pytest.param(("--exact",), 6, 6, ALONE, id="exact", marks=pytest.mark.slow),
        pytest.param((), 4, 8, BATCHED, id="batched", marks=pytest.mark.slow),
        pytest.param(("--exact",), 300, 100, ALONE, id="exact-many", marks=pytest.mark.slow),
        pytest.param((), 75, 110, BATCHED, id="batched-many", marks=pytest.mark.slow),
    ],
)
def test_answers_are_the_same_with_faults(
    tmp_path: Path, how: tuple[str, ...], faults: int, examples: int, gap: tuple[int, int]
) -> None:
    check(tmp_path, answers(tmp_path, *how, examples=examples), faults, gap)


@pytest.mark.slow
def test_likelihoods_are_the_same_with_faults(tmp_path: Path) -> None:
    how = ("--score", "likelihood", "--exact", *CHOICES)
    check(tmp_path, answers(tmp_path, *how, examples=150, benchmark="clash"), 90, ALONE)


@pytest.mark.slow
def test_a_judge_gives_the_same_labels_with_faults(tmp_path: Path) -> None:
    check(tmp_path, labels(tmp_path, 1200), 50, BATCHED, seed=2)


@pytest.mark.slow
def test_a_training_gives_the_same_adapter_with_faults(tmp_path: Path) -> None:
    data = write_training_set(tmp_path / "rows")
    log = tmp_path / "faults"
    orders = {"metal_faults": {"log": str(log), "count": 6, "gap": (100, 250), "seed": 4}}
    trained = []
    for name, ordered in (("clean", {}), ("faulty", orders)):
        (tmp_path / name).mkdir()
        rashomon = Rashomon(tmp_path / name, ordered)
        options = ("--rank", "2", "--batch-size", "2", "--steps", "40", "--save-every", "1", "--dropout", "0.1")
        rashomon.run(
            "train", "--model", FOUR_BIT, "--data", data, "--name", NAME, *options, "--display", "none", code=VERDICTS
        )
        folder = rashomon.workspace / "trainings" / NAME
        reader = LogReader(folder)
        reader.poll()
        weights = [(folder / kind / "adapters.safetensors").read_bytes() for kind in ("adapter", "best")]
        trained.append((reader.curve.losses, reader.curve.validations, weights))
    lines = log.read_text().splitlines()
    print(len(lines), Counter(lines))
    assert trained[0] == trained[1]
    assert len(lines) == 6, "all of them came"
