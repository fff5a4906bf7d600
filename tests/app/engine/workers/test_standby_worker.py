"""A worker that imports its libraries before it has a job: it takes only its own, and never outlives its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli import cli
from app.engine.workers import standby_worker
from app.engine.workers.worker_job import Job
from tests.support.command import ROOT, Rashomon, children_of

WAIT_SECONDS = 60


@pytest.fixture(autouse=True)
def _no_leftover() -> Iterator[None]:
    yield
    standby_worker.discard()


def ended(pid: int) -> bool:
    """Wait for the end of a process that is not our child."""
    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def outcome(worker: standby_worker.StandbyWorker) -> int:
    """Return the exit code that a worker reports, while its standard input stays open."""
    assert worker.process.stdout is not None
    code = int(json.loads(worker.process.stdout.read())["code"])
    worker.discard()
    return code


def test_worker_takes_a_job_of_its_model(tmp_path: Path) -> None:
    standby_worker.start(str(tmp_path / "no model"))
    job = Job((), ())
    worker = standby_worker.hand_over(str(tmp_path / "no model"), job.to_json())
    assert worker is not None
    assert outcome(worker) == 0


def test_worker_of_another_model_is_ended(tmp_path: Path) -> None:
    standby_worker.start(str(tmp_path / "a"))
    assert standby_worker._worker is not None
    process = standby_worker._worker.process
    assert standby_worker.hand_over(str(tmp_path / "b"), Job((), ()).to_json()) is None
    assert process.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_worker_waits_during_a_policy(tmp_path: Path) -> None:
    standby_worker.start(str(tmp_path / "a"))
    assert standby_worker.hand_over("policy:uniform", Job((), ()).to_json()) is None
    worker = standby_worker.hand_over(str(tmp_path / "a"), Job((), ()).to_json())
    assert worker is not None
    assert outcome(worker) == 0


def test_worker_whose_parent_ends_right_after_the_job_ends(tmp_path: Path) -> None:
    standby_worker.start(str(tmp_path / "a"))
    worker = standby_worker.hand_over(str(tmp_path / "a"), Job((), ()).to_json())
    assert worker is not None
    worker.process.communicate(timeout=WAIT_SECONDS)
    assert worker.process.returncode in (0, 130)
    os.close(worker.errors)


def test_worker_that_died_is_replaced(tmp_path: Path) -> None:
    standby_worker.start(str(tmp_path / "a"))
    assert standby_worker._worker is not None
    process = standby_worker._worker.process
    process.kill()
    process.wait()
    assert standby_worker.hand_over(str(tmp_path / "a"), Job((), ()).to_json()) is None


@pytest.mark.parametrize("model", ["policy:uniform", "openai:gpt", "cuda:org/name", None])
def test_only_local_models_of_mlx_have_one(model: str | None) -> None:
    standby_worker.start(model)
    assert standby_worker._worker is None


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_worker_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = "from app.engine.workers import standby_worker as standby; standby.start('m'); print(flush=True); input()"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        (worker,) = children_of(parent.pid)
        parent.kill()
    assert ended(worker)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_command_that_is_stopped_while_it_plans_leaves_no_worker(
    number: signal.Signals, rashomon: Rashomon, tmp_path: Path
) -> None:
    process = rashomon.start("--batch", "--benchmark", "cmc-bench", "--model", str(tmp_path), "--name", "x")
    while not (workers := children_of(process.pid)) and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(number)
    process.communicate(timeout=WAIT_SECONDS)
    assert workers
    assert all(map(ended, workers))


def test_model_of_a_command_or_its_spec_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs" / "folder").mkdir(parents=True)
    spec = tmp_path / "specs" / "spec.toml"
    spec.write_text('model = ["folder", "b"]')
    assert standby_worker.first_model(spec, []) == str(tmp_path / "specs" / "folder")
    assert standby_worker.first_model(spec, ["specs/folder", "c"]) == str(tmp_path / "specs" / "folder")
    assert standby_worker.first_model(spec, ["org/name"]) == "org/name"
    spec.write_text('model = "org/name"')
    assert standby_worker.first_model(spec, []) == "org/name"
    for text in ("model = 7", "model = []", "model = ", "[[", "\x00"):
        spec.write_text(text)
        assert standby_worker.first_model(spec, []) is None
    os.mkfifo(tmp_path / "pipe")
    assert standby_worker.first_model(tmp_path / "pipe", []) is None
    assert standby_worker.first_model(tmp_path / "missing", []) is None
    assert standby_worker.first_model(None, []) is None


@pytest.mark.parametrize(
    ("arguments", "starts"),
    [
        (["--model", "a"], 1),
        (["--model", "a", "--dry-run"], 0),
        (["--model", "a", "--bogus"], 0),
        (["--bogus", "--model", "a", "--workers", "ray://x"], 0),
        (["--model", "a", "--limit", "none"], 0),
        (["--model", "a", "--strata", "nonsense"], 0),
        (["--model", "a", "--help"], 0),
    ],
)
def test_only_a_valid_command_line_starts_a_worker(
    arguments: list[str], starts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(standby_worker, "start", started.append)
    CliRunner().invoke(cli, ["--workspace", str(tmp_path), "--batch", "--benchmark", "cmc-bench", *arguments])
    assert started == ["a"] * starts
