"""A worker that is asked to stop again while it is being asked, and one whose parent is gone."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.engine.workers.worker_stop_time import end_worker, held_memory, stop_seconds
from app.store.run_store import RunStore
from mlx_backends.engine_registry import required_memory
from tests.app.commands.running.test_batch_command import wait_until
from tests.support.command import Rashomon, children_of
from tests.support.tiny_models.qwen3_vl import build as build_tiny

PAIRS = 20_000

_SET = """
import signal, sys
from app.engine.workers.run_worker import StopFlag
stop = StopFlag()
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: stop.set())
print("ready", flush=True)
while not sys.stdin.closed and not sys.stdin.buffer.raw.read(1):
    pass
print("stopped" if stop.is_set() else "not asked", flush=True)
"""


@pytest.mark.slow
def test_signals_within_the_handler_of_another_leave_no_worker_waiting_for_itself(tmp_path: Path) -> None:
    """threading.Event ends in a deadlock or RecursionError here."""
    rashomon = Rashomon(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", _SET],
        env=rashomon.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for number in itertools.islice(itertools.cycle((signal.SIGTERM, signal.SIGINT)), 2 * PAIRS):
            process.send_signal(number)
        message, errors = process.communicate("x", timeout=20)
        assert (message, errors) == ("stopped\n", "")


def test_a_worker_whose_parent_was_killed_ends_in_order(rashomon: Rashomon) -> None:
    held = rashomon.held()
    batch = held.start(
        "--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "x", "--display", "none"
    )
    folder = rashomon.workspace / "runs" / "x"
    while not (folder / "run.sqlite").exists() or not answered(folder):
        time.sleep(0.05)
    (worker,) = children_of(batch.pid)
    os.kill(batch.pid, signal.SIGKILL)
    batch.wait()
    held.go_on()
    end = time.monotonic() + 30
    while Path(f"/proc/{worker}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists() or Path(f"/proc/{worker}/stat").read_text().split()[2] == "Z"
    assert "Traceback" not in (folder / "worker.log").read_text()
    with RunStore.read(folder) as store:
        assert store.meta("state")["state"] == "interrupted"
    rashomon.run("resume", "x", "--display", "none")


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_worker_that_hangs_in_a_library_is_killed_some_time_after_the_first_signal(
    rashomon: Rashomon, number: signal.Signals
) -> None:
    hanging, name = rashomon.home / "hanging", f"hangs-{number}"
    options = ("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", name, "--limit", "2")
    ordered = rashomon.ordered(hangs={"after": 5, "file": str(hanging)}, stop_seconds=1.0)
    batch = ordered.start(*options, "--display", "plain")
    wait_until(hanging.exists)
    hanging.unlink()
    batch.send_signal(number)
    message, _ = batch.communicate(timeout=30)
    assert batch.returncode == 130
    assert "waiting up to" in message
    assert "was killed" in message
    folder = rashomon.workspace / "runs" / name
    safe = answered(folder)
    assert 0 < safe <= 5, "answers that came within a commit of the last one share the next"
    assert "was killed" in (folder / "worker.log").read_text()
    calls = rashomon.home / "calls"
    rashomon.ordered(calls=str(calls)).process("resume", name, "--display", "none")
    with RunStore.read(folder) as store:
        total = sum(p.total for p in store.progress())
        assert sum(p.done for p in store.progress()) == total
    assert len(calls.read_text().splitlines()) == total - safe, "what was reported done is not asked again"


@pytest.mark.slow
def test_a_second_sigterm_is_no_insistence_and_ctrl_c_is(rashomon: Rashomon) -> None:
    hanging = rashomon.home / "hanging"
    ordered = rashomon.ordered(hangs={"after": 5, "file": str(hanging)})
    options = ("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "x", "--limit", "2")
    batch = ordered.start(*options, "--display", "none")
    wait_until(hanging.exists)
    (worker,) = children_of(batch.pid)
    for _ in range(3):
        batch.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            batch.wait(1)
    assert children_of(batch.pid) == [worker]
    batch.send_signal(signal.SIGINT)
    batch.communicate(timeout=10)
    assert batch.returncode == 130


def test_the_time_to_end_follows_the_memory_held(tmp_path: Path) -> None:
    assert stop_seconds(0) == stop_seconds(270_000_000) == 60
    assert stop_seconds(32_000_000_000) == 240
    judge = str(build_tiny(tmp_path / "judge"))
    assert held_memory(["policy:uniform", "match", "", str(tmp_path / "missing")]) == 0
    assert held_memory(["policy:uniform", judge]) == required_memory(judge) > 0
    assert held_memory([judge], 40_000_000_000) == 40_000_000_000


@pytest.mark.slow
def test_a_worker_that_needs_longer_than_twenty_seconds_ends_by_itself() -> None:
    slow = "import signal, time; signal.signal(15, lambda *_: (time.sleep(2), exit(7))); print(1, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", slow], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        end_worker(worker, stop_seconds(0))
        assert worker.returncode == 7


def answered(folder: Path) -> int:
    with RunStore.read(folder) as store:
        return sum(p.done for p in store.progress())
