"""A worker that dies for want of memory is started again, narrower; what may have killed it is tried alone, once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import stat
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.commands.terminal.progress_display import SilentDisplay
from app.engine.workers.keep_awake import keep_awake
from app.engine.workers.worker_job import Job
from app.engine.workers.worker_recovery import recover
from app.engine.workers.worker_supervisor import Supervisor
from app.store.run_database import DATABASE
from app.store.run_facts import UNJUDGED_STATE, worker_deaths
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.workspace import Workspace
from benchmarks.build import Build
from benchmarks.cmc_bench import CMCBench
from benchmarks.instance_sampling import select
from tests.app.commands.running.test_batch_command import states, wait_until
from tests.support.command import Rashomon, children_of
from tests.support.runs import instances, make_run, says

RUN = "r"
LIMIT = 3  # examples, of eight instances each


def batch(rashomon: Rashomon, *arguments: str | Path, code: int = 0) -> str:
    spec = ("--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", RUN, "--limit", str(LIMIT))
    done = rashomon.run("--batch", *spec, *arguments, "--display", "plain", code=code)
    return done.stdout + done.stderr


def query(rashomon: Rashomon, sql: str) -> list[Any]:
    with sqlite3.connect(rashomon.workspace / "runs" / RUN / DATABASE) as connection:
        return connection.execute(sql).fetchall()


def instance(rashomon: Rashomon, ordinal: int) -> str:
    """The id of an instance of the run that will be made."""
    build = Build.open(rashomon.workspace / "benchmarks" / "cmc-bench")
    instances = list(CMCBench().instances(build, "paper"))
    chosen = list(select(instances, limit=LIMIT, stratify_by=CMCBench.stratum, seed=0))
    return chosen[ordinal].id


def errors(rashomon: Rashomon) -> dict[str, str]:
    return dict(
        query(
            rashomon,
            "SELECT i.id, g.error FROM generation g JOIN instance i ON i.ordinal = g.instance"
            " WHERE g.accepted AND g.finish_reason = 'error'",
        )
    )


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("SIGKILL", "was killed by SIGKILL"),
        pytest.param("SIGABRT", "was killed by SIGABRT", marks=pytest.mark.slow),
        pytest.param("MemoryError", "ran out of memory (MemoryError)", marks=pytest.mark.slow),
        ("MLX", "ran out of memory (RuntimeError: [metal::malloc] Attempting to allocate"),
    ],
)
def test_a_request_that_kills_costs_two_deaths_and_one_error(rashomon: Rashomon, how: str, says: str) -> None:
    poison = instance(rashomon, 10)
    calls = rashomon.home / "calls"
    result = batch(rashomon.ordered(capacity=8, calls=str(calls), dies={"how": how, "of": [poison]}), code=1)
    assert result.count("; restart ") == 2, result
    outcome = errors(rashomon)
    assert list(outcome) == [poison]
    assert says in outcome[poison]
    assert "for the second time" in outcome[poison]
    total = 8 * LIMIT
    assert states(rashomon)[RUN] == ("done", total, total)
    assert query(rashomon, "SELECT count(*) FROM generation") == [(total,)]
    asked = calls.read_text().splitlines()
    assert asked.count(f"{poison}#0") == 2, "with seven others, then alone"
    assert max(map(asked.count, asked)) == 2, "what was answered alone is not asked again"
    shown = rashomon.run("show", RUN).stdout
    assert "8 requests in flight; they are repeated one at a time, then others 4 at a time" in shown
    assert f"for the second time on {poison} alone: recorded as an error" in shown
    assert shown.count(says) == result.count(says) - result.count("; restart "), "and the end report says the same"
    log = (rashomon.workspace / "runs" / RUN / "worker.log").read_text()
    assert log.count("; restart ") == 2


@pytest.mark.parametrize(
    ("how", "says", "width"),
    [
        ("timeout", "lost the GPU: a computation took too long", 8),
        ("buffers", "lost the GPU: more GPU buffers were needed than a process may hold", 4),
    ],
)
def test_a_worker_that_lost_the_gpu_is_replaced_by_one_as_wide_unless_that_was_too_much(
    rashomon: Rashomon, how: str, says: str, width: int
) -> None:
    poison = instance(rashomon, 10)
    result = batch(rashomon.ordered(capacity=8, dies={"how": how, "of": [poison]}), code=1)
    assert says in result
    assert f"then others {width} at a time" in result
    assert list(errors(rashomon)) == [poison]


@pytest.mark.slow
def test_what_is_too_wide_is_halved_until_it_fits(rashomon: Rashomon) -> None:
    result = batch(rashomon.ordered(capacity=8, dies={"how": "SIGKILL", "above": 2}))
    assert "then others 4 at a time" in result
    assert "then others 2 at a time" in result
    assert f"{RUN}: interrupted" not in result, "while another worker is on its way"
    assert errors(rashomon) == {}
    assert states(rashomon)[RUN][0] == "done"


@pytest.mark.slow
def test_two_that_kill_in_one_batch_end_the_command_and_not_the_run(rashomon: Rashomon) -> None:
    poison = [instance(rashomon, 9), instance(rashomon, 12)]
    poisoned = rashomon.ordered(capacity=8, dies={"how": "SIGKILL", "of": poison})
    result = batch(
        poisoned, "--restarts", "3", code=1
    )  # the two may be adjacent: three deaths without an answer between
    assert set(errors(rashomon)) == set(poison), result
    assert states(rashomon)[RUN] == ("done", 8 * LIMIT, 8 * LIMIT)
    rashomon.run("resume", RUN, "--retry-errors", "--display", "none")
    assert errors(rashomon) == {}, "given more memory they are answered like any other"


@pytest.mark.slow
def test_without_restarts_the_next_command_still_learns_from_the_death(rashomon: Rashomon) -> None:
    poison = instance(rashomon, 10)
    poisoned = rashomon.ordered(capacity=8, dies={"how": "SIGKILL", "of": [poison]})
    result = batch(poisoned, "--restarts", "0", code=3)
    assert "; restart " not in result
    assert "run `rashomon resume r`" in result
    poisoned.run("resume", RUN, "--restarts", "0", "--display", "none", code=3)
    assert list(errors(rashomon)) == [poison]
    poisoned.run("resume", RUN, "--restarts", "0", "--display", "none", code=1)  # an error is there
    assert states(rashomon)[RUN] == ("done", 8 * LIMIT, 8 * LIMIT)


@pytest.mark.slow
def test_a_machine_on_which_nothing_runs_is_given_up(rashomon: Rashomon) -> None:
    spec = rashomon.home / "spec.toml"
    spec.write_text('benchmark = "cmc-bench"\nmodel = "policy:uniform"\nname = "r"\nlimit = 3\nrestarts = 3\n')
    calls = rashomon.home / "calls"
    hopeless = rashomon.ordered(capacity=4, calls=str(calls), dies={"how": "SIGKILL", "above": 0})
    done = hopeless.run("--batch", spec, "--display", "none", code=3)
    assert "after 3 restarts without an answer" in done.stderr
    assert calls.read_text().count("\n") == 4 + 1 + 1 + 1
    assert len(errors(rashomon)) == 3


@pytest.mark.parametrize(
    ("how", "says"), [("bug", "ZeroDivisionError"), ("2", "ended with code 2"), ("SIGSEGV", "SIGSEGV")]
)
def test_other_deaths_are_not_repeated(rashomon: Rashomon, how: str, says: str) -> None:
    calls = rashomon.home / "calls"
    result = batch(rashomon.ordered(calls=str(calls), dies={"how": how, "above": 0}), code=3)
    assert says in result
    assert calls.read_text().count("\n") == 1
    assert "; restart " not in result
    assert "; restart " not in (rashomon.workspace / "runs" / RUN / "worker.log").read_text()


def test_a_worker_that_found_no_room_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=4096))
    worker: Any = SimpleNamespace(returncode=1, pid=0)
    run = tmp_path / "runs" / RUN
    end = Supervisor(SilentDisplay())._outcome(Job((run,), ()), worker, b"", run / "worker.log")
    assert end.code == 3
    assert f"the disk of {run.parent} is full" in end.message


@pytest.mark.parametrize("number", ["twice", "the worker", pytest.param("once", marks=pytest.mark.slow)])
def test_whoever_stops_a_run_has_it_stopped(rashomon: Rashomon, number: str) -> None:
    process = rashomon.held().start("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", RUN)
    wait_until(lambda: states(rashomon).get(RUN, ("", 0, 0))[1] > 2)
    match number:
        case "the worker":
            os.kill(children_of(process.pid)[0], signal.SIGTERM)
        case "twice":
            for _ in range(2):  # the second one kills the worker
                process.send_signal(signal.SIGINT)
                time.sleep(0.01)
        case _:
            process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "; restart " not in out + err
    run = read_summary(rashomon.workspace / "runs" / RUN)
    assert (run.state, run.note) == ("interrupted", "")
    assert query(rashomon, "SELECT count(*) FROM meta WHERE key IN ('deaths', 'suspects')") == [(0,)]


@pytest.mark.slow
def test_what_a_killed_command_left_under_way_accuses_nobody(rashomon: Rashomon) -> None:
    slow = rashomon.ordered(seconds=(0.05, 0.06), capacity=4)
    process = slow.start("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", RUN)
    wait_until((rashomon.workspace / "runs" / RUN / "under-way.json").exists)
    for pid in (process.pid, *children_of(process.pid)):
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    wait_until(lambda: states(rashomon)[RUN][0] == "interrupted")
    resumed = rashomon.run("resume", RUN, "--display", "json").stdout
    events = [json.loads(line) for line in resumed.splitlines()]
    displayed = [event["state"] for event in events if event["event"] == "progress"]
    assert (displayed[0], displayed[-1]) == ("planned", "done")
    assert "interrupted" not in displayed, "while a worker is on its way"
    assert query(rashomon, "SELECT count(*) FROM meta WHERE key IN ('deaths', 'suspects')") == [(0,)]
    assert sorted(path.name for path in (rashomon.workspace / "runs" / RUN).iterdir()) == [
        "lock",
        DATABASE,
        "spec.toml",
        "supervisor",
        "worker.log",
    ]


def a_program(folder: Path, script: str) -> None:
    path = folder / "caffeinate"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_death_is_not_that_of_a_run_that_waits_for_its_judge(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    waiting, running = (make_run(workspace, name, instances(1), says("12")) for name in ("waiting", "running"))
    for folder, state in ((waiting, UNJUDGED_STATE), (running, {"state": "running"})):
        with RunStore.open(folder) as store:
            store.set_meta("state", {**state, "pid": 7})
    recover((waiting, running), 7, "was killed by SIGKILL,")
    deaths = []
    for folder in (waiting, running):
        with RunStore.read(folder) as store:
            deaths.append(len(worker_deaths(store)))
    assert deaths == [0, 1]


def test_a_mac_is_kept_awake_while_a_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_program(tmp_path, f'echo "$$ $@" > {tmp_path}/called; exec sleep 60')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    called = tmp_path / "called"
    with keep_awake():
        pass
    assert sys.platform == "darwin" or not called.exists(), "elsewhere nothing is started"
    monkeypatch.setattr("sys.platform", "darwin")
    with keep_awake():
        wait_until(lambda: called.exists() and called.read_text().endswith("\n"))
        pid, *arguments = called.read_text().split()
        assert arguments == ["-i", "-w", str(os.getpid())]
        os.kill(int(pid), 0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
    called.unlink()

    class Seen(SilentDisplay):
        def __exit__(self, *_: object) -> None:
            wait_until(called.exists)

    assert Supervisor(Seen()).run([]) == 0


def test_a_mac_that_cannot_be_kept_awake_runs_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("PATH", str(tmp_path))
    with keep_awake():
        pass
    (tmp_path / "caffeinate").write_bytes(b"\x7fELF is no program")
    (tmp_path / "caffeinate").chmod(0o755)
    with keep_awake():
        pass
    a_program(tmp_path, "exit 3")
    with keep_awake():
        pass
