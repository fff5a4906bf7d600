"""A worker that is asked to stop again while it is being asked, and one whose parent is gone."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from app.store.run import RunStore
from tests.support.command import Rashomon, children_of

PAIRS = 20_000

_SET = """
import signal, sys
from app.engine.workers.worker import StopFlag
stop = StopFlag()
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: stop.set())
print("ready", flush=True)
while not sys.stdin.closed and not sys.stdin.buffer.raw.read(1):
    pass
print("stopped" if stop.is_set() else "not asked", flush=True)
"""


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
        told, errors = process.communicate("x", timeout=20)
        assert (told, errors) == ("stopped\n", "")


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


def answered(folder: Path) -> int:
    with RunStore.read(folder) as store:
        return sum(p.done for p in store.progress())
