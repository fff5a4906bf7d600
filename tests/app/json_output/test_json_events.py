"""``--display json``: events on standard output and nothing else, of which the last is the outcome, whatever it is."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from app.cli import cli
from app.cli.cli_options import EVENT_COMMANDS
from app.store.file_locks import FileLock
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.vocabulary import Verdict
from tests.support.command import Rashomon
from tests.support.demo import write_table
from tests.support.json_contract import check_json
from tests.support.runs import instances, make_run, says

BATCH = ("batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "r", "--limit", "2")
JSON = ("--display", "json")


def events(rashomon: Rashomon, *arguments: str | Path, code: int = 0) -> list[dict[str, Any]]:
    """Run a command, whose lines are checked there, and return the events."""
    return [json.loads(line) for line in rashomon.run(*arguments, *JSON, code=code).stdout.splitlines()]


def test_a_run_ends_with_its_outcome_and_a_finished_one_is_its_outcome(rashomon: Rashomon) -> None:
    *progress, outcome = events(rashomon, *BATCH)
    assert {event["event"] for event in progress} == {"progress"}
    assert (outcome["exit_code"], outcome["message"]) == (0, "r: 16 of 16 answered")
    run = {"name": "r", "state": "done", "done": 16, "total": 16, "errors": 0, "failed_judgements": 0, "problem": None}
    assert outcome["runs"] == [run]
    assert events(rashomon, *BATCH) == events(rashomon, "resume", "r") == [outcome]
    assert events(rashomon, *BATCH, "--dry-run")[0]["runs"] == [run]
    (judged,) = events(rashomon, "judge", "r", "--judge", "match")[-1:]
    assert (judged["runs"], judged["message"]) == ([run], "match@4: 16 labelled, 0 unparsed, 0 failed")


@pytest.mark.parametrize(
    "arguments",
    [
        (*BATCH, "--no-such-option"),
        ("--batch", "--benchmark", "nothing", "--model", "policy:uniform"),
        ("resume", "no-such-run"),
        ("judge", "no-such-run", "--judge", "match"),
        ("try", "policy:uniform"),
        ("demo", "no-such-benchmark"),
        ("import", "\x1b[31m.jsonl", "--benchmark", "cmc-bench", "--model", "m"),
    ],
)
def test_a_command_that_cannot_begin_says_why_in_its_outcome(rashomon: Rashomon, arguments: tuple[str, ...]) -> None:
    done = rashomon.run(*arguments, *JSON, code=2)
    outcome = json.loads(done.stdout)
    assert (outcome["exit_code"], outcome["runs"]) == (2, [])
    assert outcome["message"]
    assert len(done.stderr.splitlines()) == 1


def test_a_run_in_use_by_another_process_is_in_the_outcome(rashomon: Rashomon) -> None:
    rashomon.run(*BATCH)
    with FileLock(rashomon.workspace / "runs" / "r" / "lock") as lock:
        assert lock.acquire("a test")
        done = rashomon.process(*BATCH, *JSON, code=4)
    outcome = json.loads(done.stdout)
    assert outcome["exit_code"] == 4
    assert [run["name"] for run in outcome["runs"]] == ["r"]
    assert "a test" in outcome["message"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_with_its_outcome(rashomon: Rashomon, number: signal.Signals) -> None:
    process = rashomon.ordered(seconds=(0.05, 0.06)).start(*BATCH, *JSON)
    assert process.stdout is not None
    while json.loads(line := process.stdout.readline())["done"] == 0:
        pass
    process.send_signal(number)
    output = line + process.communicate(timeout=60)[0]
    assert process.returncode == 130
    check_json([*BATCH, *JSON], output, (rashomon.workspace, rashomon.home))
    outcome = json.loads(output.splitlines()[-1])
    assert outcome["exit_code"] == 130
    assert 0 < outcome["runs"][0]["done"] < outcome["runs"][0]["total"]


def test_an_interrupted_start_ends_with_its_outcome(rashomon: Rashomon) -> None:
    """The signal comes at once: Python may not have begun to handle it, and then there is nothing to print."""
    process = rashomon.start("judge", "no-such-run", "--judge", "match", *JSON)
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=60)[0]
    if process.returncode > 0:
        assert json.loads(output)["exit_code"] == process.returncode


def test_failures_and_a_worker_that_dies_are_in_the_outcome(rashomon: Rashomon) -> None:
    hopeless = rashomon.ordered(dies={"how": "SIGKILL", "above": 0})
    done = hopeless.run(*BATCH, *JSON, "--restarts", "0", code=3)
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["exit_code"] == 3
    assert outcome["runs"][0]["done"] < outcome["runs"][0]["total"], outcome


def test_the_failures_of_a_judge_that_was_asked_later_are_in_the_outcome(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    folder = make_run(Workspace(rashomon.workspace), "r", instances(2), says("12"))
    with RunStore.open(folder) as store:
        verdict = Verdict("openai:x@1", "judge-failed", reason="no label")
        records = [(number, record.instance.condition, verdict) for number, record in enumerate(store.records(), 1)]
        store.add_verdicts(records)
    (outcome,) = events(rashomon, "judge", "r", "--judge", "match", "--dry-run")
    assert outcome["runs"][0]["failed_judgements"] == len(records)
    assert rashomon.json("runs")[0]["failed_judgements"] == len(records)
    assert "12 failed judgements" in rashomon.run("runs").stdout


def test_a_message_has_no_folder_that_was_not_typed(
    rashomon: Rashomon, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = subprocess.run(
        rashomon.command("import", "answers.jsonl", "--benchmark", "cmc-bench", "--model", "m", *JSON),
        env=rashomon.environment,
        cwd=elsewhere,
        capture_output=True,
        text=True,
        check=False,
    )
    message = json.loads(done.stdout)["message"]
    assert done.returncode == 2
    assert "answers.jsonl" in message
    assert str(elsewhere) not in message


def test_json_is_a_display_of_the_commands_that_end_with_an_outcome() -> None:
    displays = {
        name: option.type
        for name, command in cli.commands.items()
        for option in command.params
        if option.name == "display"
    }
    with_events = {
        name for name, kinds in displays.items() if isinstance(kinds, click.Choice) and "json" in kinds.choices
    }
    assert with_events == {*EVENT_COMMANDS}


@pytest.mark.slow
def test_a_verdict_on_a_model_is_the_message_of_its_outcome(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "cmc-bench", "--from", write_table(tmp_path, 16))
    *_, outcome = events(rashomon, "try", "policy:always-text", code=6)
    assert (outcome["exit_code"], outcome["runs"][0]["state"]) == (6, "done")
    assert outcome["message"].startswith("Not shown: ")
    rashomon.run("try", "policy:always-text", "--json", *JSON, code=2)


@pytest.mark.slow
def test_the_demo_prints_nothing_but_events(tmp_path: Path) -> None:
    *progress, outcome = events(Rashomon(tmp_path), "demo", "cmc-bench")
    assert len(outcome["runs"]) == len({event["run"] for event in progress}) == 7
