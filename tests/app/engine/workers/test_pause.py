"""A pause: a file in the run's folder, for a run of any command, in real processes."""

from __future__ import annotations

from pathlib import Path

from app.engine.run_control import is_paused, pause, stop_run, unpause, worker_pid
from app.store.run_summary import read_summary
from tests.app.commands.running.test_batch_command import wait_until
from tests.support.command import Rashomon, kill_all

RUN = "paused"
ARGUMENTS = (
    "--batch",
    "--benchmark",
    "cmc-bench",
    "--model",
    "policy:uniform",
    "--name",
    RUN,
    "--limit",
    "6",
    "--display",
    "none",
)


def calls(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_a_pause_holds_a_batch_until_it_is_lifted(rashomon: Rashomon) -> None:
    log = rashomon.home / "calls"
    slow = rashomon.ordered(calls=str(log), seconds=(0.02, 0.02))
    folder = rashomon.workspace / "runs" / RUN
    process = slow.start(*ARGUMENTS)
    wait_until(lambda: calls(log) > 3)
    pause(folder)
    wait_until(lambda: read_summary(folder).state == "paused" and read_summary(folder).done == calls(log))
    asked = calls(log)
    assert rashomon.json("runs")[0]["state"] == "paused"
    assert "is already working on" in rashomon.run(*ARGUMENTS, code=4).stderr
    assert is_paused(folder), "being refused lifts no pause"
    assert calls(log) == asked, "nothing was asked meanwhile"
    assert "no longer paused" in rashomon.run("resume", RUN).stdout
    assert process.wait() == 0
    process.communicate()
    run = read_summary(folder)
    assert (run.state, run.done) == ("done", run.total)
    assert calls(log) == run.total, "nothing was asked twice"


def test_a_paused_run_can_be_stopped_and_killed_and_goes_on_when_it_is_started(rashomon: Rashomon) -> None:
    log = rashomon.home / "calls"
    slow = rashomon.ordered(calls=str(log), seconds=(0.02, 0.02))
    folder = rashomon.workspace / "runs" / RUN
    process = slow.start(*ARGUMENTS)
    wait_until(lambda: calls(log) > 3)
    pause(folder)
    wait_until(lambda: read_summary(folder).state == "paused")
    stop_run(folder)
    assert process.wait() == 130
    process.communicate()
    assert (read_summary(folder).state, is_paused(folder)) == ("interrupted", True)
    process = slow.start("resume", RUN, "--display", "none")
    wait_until(lambda: read_summary(folder).state == "running" and worker_pid(folder) is not None)
    assert not is_paused(folder), "whoever starts a run wants it to go on"
    pause(folder)
    wait_until(lambda: read_summary(folder).state == "paused")
    kill_all(process)
    wait_until(lambda: read_summary(folder).state == "interrupted")
    assert not unpause(folder)
    rashomon.run("resume", RUN, "--display", "none")
    assert read_summary(folder).state == "done"
