"""Trainings in which something fails: each ends with its cause, in the terminal and in its folder, or resumes by itself."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.exit_codes import VERDICTS
from benchmarks.untrusted.safe_files import replace_file
from mlx_backends.mlx.training.training_loop import TrainingLoop
from tests.support.command import Rashomon
from tests.support.metal_injector import failure
from tests.support.trainings import trained_here, write_training_set

OUT_OF_MEMORY = RuntimeError(
    "[metal::malloc] Attempting to allocate 9663676416 bytes which is greater than the maximum"
)


@pytest.fixture(autouse=True)
def _here() -> Iterator[None]:
    with trained_here():
        yield


@pytest.fixture(scope="module")
def training_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_training_set(tmp_path_factory.mktemp("set") / "rows")


def command(model: Path, data: Path, *more: str) -> tuple[str, ...]:
    options = ("--rank", "2", "--batch-size", "1", "--max-length", "512", "--steps", "4", "--save-every", "2")
    return ("train", "--model", str(model), "--data", str(data), "--name", "t", *options, "--dropout", "0.1", *more)


def listing(rashomon: Rashomon) -> dict[str, Any]:
    (row,) = rashomon.json("trainings")
    return dict(row)


def fail_at(monkeypatch: pytest.MonkeyPatch, step: int, error: Exception, times: int = 10**6) -> list[int]:
    """Let the update ``step`` raise an error so many times; return the list of the updates that are tried."""
    learn: Callable[..., Any] = TrainingLoop.learn
    tried: list[int] = []

    def failing(loop: TrainingLoop, number: int, *rest: Any) -> Any:
        tried.append(number)
        if number == step and tried.count(step) <= times:
            raise error
        return learn(loop, number, *rest)

    monkeypatch.setattr(TrainingLoop, "learn", failing)
    return tried


@pytest.mark.slow
def test_unexpected_error_is_reported_and_recorded(
    tiny: Path, training_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rashomon = Rashomon(tmp_path)
    fail_at(monkeypatch, 3, ValueError("shapes (3,4) and (5,6) do not match"))
    failed = rashomon.run(*command(tiny, training_set), code=3)
    assert "ValueError: shapes (3,4)" in failed.stderr
    assert "worker.log" in failed.stderr
    row = listing(rashomon)
    assert row["state"] == "failed"
    assert "ValueError: shapes (3,4)" in row["note"]
    monkeypatch.undo()
    with trained_here():
        rashomon.run("train", "--resume", "t", code=VERDICTS)
    assert listing(rashomon)["state"] == "done"


@pytest.mark.parametrize("error", [failure("ignored"), OUT_OF_MEMORY], ids=["gpu", "memory"])
def test_worker_that_lost_the_gpu_is_replaced_and_resumes(
    tiny: Path, training_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    rashomon = Rashomon(tmp_path)
    tried = fail_at(monkeypatch, 4, error, times=2)
    done = rashomon.run(*command(tiny, training_set), code=VERDICTS)
    assert tried == [1, 2, 3, 4, 3, 4, 3, 4]
    assert done.stderr.count("; restart ") == 2
    assert listing(rashomon)["state"] == "done"


def test_fault_that_comes_again_and_again_ends_the_training(
    tiny: Path, training_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rashomon = Rashomon(tmp_path)
    tried = fail_at(monkeypatch, 3, failure("memory"))
    failed = rashomon.run(*command(tiny, training_set), code=3)
    assert tried == [1, 2, 3, 3, 3]  # two restarts after the checkpoint of update 2
    row = listing(rashomon)
    assert row["state"] == "failed"
    assert "OutOfMemory" in row["note"]
    assert "--max-pixels" in failed.stderr


@pytest.mark.parametrize("when", ["queued", "training", "done"])
def test_state_that_cannot_be_written_is_reported(
    tiny: Path, training_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    def full(folder: Path, name: str, data: bytes) -> None:
        if name == "state.json" and json.loads(data)["state"] in (when, "failed"):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace_file(folder, name, data)

    monkeypatch.setattr("app.engine.training.training_folder.replace_file", full)
    rashomon = Rashomon(tmp_path)
    failed = rashomon.run(*command(tiny, training_set), code=3)
    assert "No space left on device" in failed.stderr
    monkeypatch.undo()
    with trained_here():
        rashomon.run("train", "--resume", "t", code=VERDICTS)
    assert listing(rashomon)["state"] == "done"
