"""Exit codes as a script meets them: real processes, each code with its one line, whatever is displayed."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from app.commands.running.run_execution import _failures_text
from app.exit_codes import MEANINGS
from app.store.run_store import RunStore
from app.store.run_summary import RunSummary, read_summary
from app.store.store_types import ConditionProgress, JudgedCounts
from app.store.workspace import Workspace
from tests.app.commands.running.test_batch_command import wait_until
from tests.support.command import ROOT, Rashomon, children_of, kill_all

BATCH = ("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "x", "--limit", "4")
DISPLAYS = ("none", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("plain", "json")))


def answered(rashomon: Rashomon) -> int:
    folder = rashomon.workspace / "runs" / "x"
    if not (folder / "run.sqlite").exists():
        return 0
    with RunStore.read(folder) as store:
        return sum(p.done for p in store.progress())


def reasons(errors: str) -> list[str]:
    return [line for line in errors.splitlines() if line.startswith("rashomon: ")]


def test_the_docs_and_the_help_have_every_code_with_its_meaning(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "scripting.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+?) \|.*\|$", text, re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == MEANINGS
    printed = " ".join(Rashomon(tmp_path).run("--help").stdout.split())
    assert all(f"{code} {meaning}" in printed for code, meaning in MEANINGS.items())


@pytest.mark.parametrize("display", DISPLAYS)
def test_failed_answers_are_1_with_the_command_that_repeats_them(rashomon: Rashomon, display: str) -> None:
    odd = rashomon.ordered(says={"/both-wrong": ["", "error"]})
    for command in (BATCH, ("resume", "x")):
        errors = odd.process(*command, "--display", display, code=1).stderr
        assert "4 answers failed in x" in errors
        assert "resume x --retry-errors" in errors
    rashomon.process("resume", "x", "--retry-errors", "--display", display)


def test_each_command_that_repeats_failures_names_a_run_that_has_them(tmp_path: Path) -> None:
    def run(name: str, errors: int, failed: int) -> RunSummary:
        progress = ConditionProgress("aligned", 9, 9, errors, 0, 0, 0.0, 0, {"openai:x@1": JudgedCounts(failed=failed)})
        return RunSummary(name, "done", {}, (progress,))

    text = _failures_text(Workspace(tmp_path), [run("odd", 0, 2), run("broken", 3, 0)])
    assert "3 answers and 2 judgements failed in 2 runs" in text
    assert "resume broken --retry-errors" in text
    assert "judge odd --judge NAME --retry-failed" in text
    assert _failures_text(Workspace(tmp_path), [run("odd", 0, 1)]).endswith("--retry-failed` repeats the judgements.")


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_worker_that_dies_again_and_again_is_3(rashomon: Rashomon, display: str) -> None:
    crashing = rashomon.ordered(abort="policy:uniform")
    errors = crashing.process(*BATCH, "--display", display, code=3).stderr
    assert "resume x" in reasons(errors)[0]
    assert display == "json" or errors.count("\n") == 1, "restarts are told where progress is"


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_run_or_a_device_that_another_process_has_is_4_and_names_it(rashomon: Rashomon, display: str) -> None:
    held = rashomon.held(needs_device=True)
    first = held.start(*BATCH, "--display", "none")
    try:
        wait_until(lambda: answered(rashomon) > 3)
        (worker,) = children_of(first.pid)
        needing = rashomon.ordered(needs_device=True)
        other = (*BATCH[:-3], "other", "--limit", "2", "--display", display)
        for command in ((*BATCH, "--display", display), (*other, "--wait", "no"), (*other, "--wait", "0.5")):
            assert f"process {worker}" in reasons(needing.process(*command, code=4).stderr)[0]
        refused = read_summary(rashomon.workspace / "runs" / "other")
        assert refused.state == "interrupted", "nothing has failed"
        assert f"process {worker}" in refused.note
        waiting = needing.start(*other, "--wait", "600")
        held.go_on()
        _, errors = waiting.communicate(timeout=120)
        assert (waiting.returncode, reasons(errors)) == (0, [])
    finally:
        kill_all(first)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_to_stop_is_130_and_keeps_the_answers(rashomon: Rashomon, number: signal.Signals) -> None:
    heeded = partial(signal.signal, number, signal.SIG_DFL)  # also where the tests run under nohup
    process = rashomon.held().start(*BATCH, "--display", "none", preexec_fn=heeded)
    wait_until(lambda: answered(rashomon) > 3)
    before = answered(rashomon)
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, len(errors.splitlines())) == (130, "", 1)
    assert "resume x" in reasons(errors)[0]
    assert answered(rashomon) >= before
    rashomon.process("resume", "x", "--display", "none")


def test_a_run_whose_terminal_closes_stops_with_its_answers(rashomon: Rashomon) -> None:
    """The terminal's shell is gone, and nothing can be printed any more."""
    held = rashomon.held()
    pid, terminal = pty.fork()
    if pid == 0:  # the leader of the terminal's session
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where the tests run under nohup
        os.chdir(rashomon.home)
        os.execve(held.command()[0], held.command(*BATCH, "--display", "full"), held.environment)
    wait_until(lambda: answered(rashomon) > 3)
    before = answered(rashomon)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert answered(rashomon) >= before
    with RunStore.read(rashomon.workspace / "runs" / "x") as store:
        assert store.meta("state")["state"] == "interrupted"


def test_nohup_keeps_a_run_from_ending_with_its_terminal(rashomon: Rashomon) -> None:
    held = rashomon.held()
    process = subprocess.Popen(
        ["nohup", *held.command(*BATCH, "--display", "none")],
        env=held.environment,
        cwd=held.home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: answered(rashomon) > 3)
    process.send_signal(signal.SIGHUP)
    held.go_on()
    process.communicate(timeout=120)
    assert process.returncode == 0


@pytest.mark.parametrize("display", ["none", "json", pytest.param("plain", marks=pytest.mark.slow)])
def test_an_altered_answer_is_3_whatever_is_displayed(rashomon: Rashomon, display: str) -> None:
    rashomon.run(*BATCH, "--display", "none")
    with closing(sqlite3.connect(rashomon.workspace / "runs" / "x" / "run.sqlite")) as database, database:
        database.execute("UPDATE generation SET text = 'other' WHERE id = (SELECT max(id) FROM generation)")
    for command in (BATCH, ("resume", "x"), ("judge", "x", "--judge", "match")):
        output = rashomon.run(*command, "--display", display, code=3).stdout
        if display == "json":
            outcome = json.loads(output.splitlines()[-1])
            assert outcome["exit_code"] == 3
            assert outcome["runs"][0]["problem"] == outcome["message"]


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_whose_streams_are_closed_has_its_own_code(rashomon: Rashomon, closed: str) -> None:
    for command, code in ((BATCH, 0), (("show", "x"), 0), (("show", "no-such-run"), 2)):
        done = subprocess.run(
            ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *rashomon.command(*command)],
            env=rashomon.environment,
            cwd=rashomon.home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert len(done.stderr.splitlines()) == (code != 0 and "2>&-" not in closed)


def test_output_to_a_full_disk_is_3(rashomon: Rashomon) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            rashomon.command("benchmarks"),
            env=rashomon.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, len(done.stderr.splitlines()), len(reasons(done.stderr))) == (3, 1, 1)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("--batch", "--benchmark", "cmc-bnch"), 2),
        (("--nonsense",), 2),
        (("show", "no-such-run"), 2),
        (("resume", "no-such-run", "--display", "none"), 2),
        (("judge", "no-such-run", "--judge", "match", "--display", "none"), 2),
        (("compare", "a", "b"), 2),
        (("parity", "a", "b"), 2),
        (("recommend", "a"), 2),
        (("export", "a"), 2),
        (("report", "a"), 2),
        (("baselines", "a"), 2),
        (("adopt", "a"), 2),
        (("open", "missing.zip"), 2),
        (("bundle", "a"), 2),
        (("push", "a", "hub:me/a"), 2),
        (("data", "get", "no-such"), 2),
        (("models", "get", "no-such"), 2),
        (("models", "get", "a/b c"), 2),
        (("build", "cmc-bench", "--from", "missing.csv", "--check"), 2),
        (("train", "--model", "none", "--data", "none"), 2),
        (("learning-curve", "--model", "none", "--data", "none"), 2),
        (("try", "policy:uniform"), 2),
        (("label", "a", "--as", "ann"), 2),
        (("review", "a", "--as", "ann"), 2),
        (("doctor", "a"), 2),
        (("serve", "--port", "0"), 2),
        (("data", "get", "clash", "--yes"), 3),  # there is no network
        (  # without Ray the command is wrong; with it, no cluster answers
            ("batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--workers", "ray://127.0.0.1:1"),
            3 if find_spec("ray") else 2,
        ),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, tuple) else str(value),
)
def test_every_command_that_fails_says_why_in_one_line(rashomon: Rashomon, command: tuple[str, ...], code: int) -> None:
    errors = rashomon.run(*command, code=code).stderr
    assert len(errors.splitlines()) == 1
