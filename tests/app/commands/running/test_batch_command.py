"""Headless runs as a user meets them: real processes, signals, wrong input, hostile answers."""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from tests.support.command import Rashomon, kill_all
from tests.support.json_output import json_result, named
from tests.support.trust import agree_to

ESCAPES = "\x1b]52;c;c3RvbGVu\x07\x1b[31m[red]2008[/red] [@click=app.bell]x[/] \u202e"
FORMULA = '=HYPERLINK("http://example.invalid","2008")'
LATEX = r"50% of $5 & a_b {x} \input{passwd} ~ ^ #"


def run_of(rashomon: Rashomon, *arguments: str | Path, code: int = 0, model: str = "policy:uniform") -> str:
    done = rashomon.run("--batch", "--benchmark", "cmc-bench", "--model", model, *arguments, code=code)
    return done.stdout + done.stderr


def states(rashomon: Rashomon) -> dict[str, tuple[str, int, int]]:
    parsed = rashomon.json("runs")
    return {run["name"]: (run["state"], run["done"], run["total"]) for run in parsed}


@pytest.mark.slow
def test_a_spec_file_makes_a_run_for_each_model_and_prompt_set(rashomon: Rashomon) -> None:
    spec = rashomon.home / "spec.toml"
    spec.write_text(
        'benchmark = "cmc-bench"\ndata = "workspace/benchmarks/cmc-bench"\n'
        'model = ["policy:always-image", "policy:always-text"]\nprompt_set = ["paper", "conflict-aware"]\nlimit = 4\n'
    )
    stdout = rashomon.run("--batch", spec).stdout
    assert "always-image (paper)" in stdout
    assert len(states(rashomon)) == 4
    assert {(state, done == total) for state, done, total in states(rashomon).values()} == {("done", True)}
    assert all(total == 32 for _, _, total in states(rashomon).values()), "four whole examples of eight instances"
    again = rashomon.run("--batch", spec).stdout
    assert again.count("instances are answered already") == 4
    assert len(states(rashomon)) == 4


@pytest.mark.parametrize("model", ["imported:x", "person:x", "baseline:agree:x", "published:x", "x" * 300])
def test_a_model_that_answers_no_requests_is_refused_before_there_is_a_run(rashomon: Rashomon, model: str) -> None:
    for more in ((), ("--dry-run",)):
        assert ";" in run_of(rashomon, *more, model=model, code=2), "it says what to do"
    assert states(rashomon) == {}


@pytest.mark.parametrize("name", ["x" * 300, "~nobody-at-all/x", "a\nb", "/dev/stdin"])
def test_a_text_that_is_no_runs_name_is_refused_in_a_sentence(rashomon: Rashomon, name: str) -> None:
    for command in (("show", name), ("parity", name, name)):
        assert rashomon.run(*command, code=2).stderr.count("\n") == 1


def test_the_command_line_goes_before_the_spec(rashomon: Rashomon) -> None:
    spec = rashomon.home / "spec.toml"
    spec.write_text('benchmark = "cmc-bench"\nmodel = "policy:random"\nlimit = 8\n[decoding]\nmax_tokens = 99\n')
    rashomon.run("--batch", spec, "--limit", "2", "--max-tokens", "7", "--name", "mine")
    rashomon.run("export", "mine", "--format", "json")
    results = json_result((rashomon.home / "export" / "mine" / "results.json").read_text())
    spec_used = named(results["runs"][0]["spec"])
    assert (spec_used["limit"], spec_used["decoding.max_tokens"], spec_used["model"]) == (2, 7, "policy:random")
    assert states(rashomon) == {"mine": ("done", 16, 16)}


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_interrupted_it_says_how_to_go_on_and_goes_on(rashomon: Rashomon, number: int) -> None:
    process = rashomon.held().start("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "x")
    wait_until(lambda: states(rashomon).get("x", ("", 0, 0))[1] > 5)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert err.strip().splitlines()[-1].endswith("run `rashomon resume x` to resume.")
    state, done, total = states(rashomon)["x"]
    assert (state, 5 < done < total) == ("interrupted", True)
    assert "resuming after" in rashomon.run("resume", "x").stdout
    assert states(rashomon)["x"] == ("done", total, total)


@pytest.mark.slow
def test_interrupted_while_it_judges_it_is_not_done_and_says_how_to_go_on(rashomon: Rashomon) -> None:
    command = ("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--limit", "6", "--name", "x")
    rashomon.run(*command)
    folder = rashomon.workspace / "runs" / "x"
    with RunStore.open(folder) as store:
        total = store.retract("match@4")
    process = rashomon.ordered(judge_seconds=0.05).start(*command)
    wait_until(lambda: any(p.judged for p in read_summary(folder).progress))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert err.strip().splitlines()[-1].endswith("run `rashomon resume x` to resume.")
    assert states(rashomon)["x"] == ("interrupted", total, total)
    assert f"/{total} judged by match@4" in rashomon.run("runs").stdout
    rashomon.run("resume", "x")
    assert states(rashomon)["x"] == ("done", total, total)
    assert "judged by" not in rashomon.run("runs").stdout


def test_a_finished_run_whose_end_was_not_recorded_is_so_by_resuming_it(rashomon: Rashomon) -> None:
    run_of(rashomon, "--limit", "2", "--name", "x")
    with RunStore.open(rashomon.workspace / "runs" / "x") as store:
        store.set_meta("state", {"state": "planned"})
    assert states(rashomon)["x"][0] == "planned"
    rashomon.run("resume", "x")
    assert states(rashomon)["x"][0] == "done"


@pytest.mark.slow
def test_when_its_parent_is_killed_the_worker_stops_by_itself(rashomon: Rashomon) -> None:
    process = rashomon.held().start("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "x")
    wait_until(lambda: states(rashomon).get("x", ("", 0, 0))[1] > 5)
    process.kill()
    process.communicate()
    wait_until(lambda: states(rashomon)["x"][0] == "interrupted")
    rashomon.run("resume", "x")


def test_a_worker_that_aborts_ends_neither_the_batch_nor_the_other_models(rashomon: Rashomon) -> None:
    crashing = rashomon.ordered(abort="policy:always-image")
    done = crashing.run(
        "--batch", "--benchmark", "cmc-bench", "--model", "policy:always-image", "--model", "policy:always-text", code=3
    )
    assert "killed by SIGABRT" in done.stderr
    assert "where GPU memory runs out" in done.stderr
    assert "after 2 restarts without an answer" in done.stderr
    assert "run `rashomon resume cmc-bench-policy-always-image-paper-" in done.stderr
    result = states(rashomon)
    assert sorted(state for state, _, _ in result.values()) == ["done", "interrupted"]


def test_two_runs_at_once_share_the_device_one_after_the_other(rashomon: Rashomon) -> None:
    held = rashomon.held(needs_device=True)
    first = held.start(
        "--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "first", "--limit", "2"
    )
    wait_until(lambda: states(rashomon).get("first", ("", 0, 0))[1] > 3)
    second = held.start(
        "--batch",
        "--benchmark",
        "cmc-bench",
        "--model",
        "policy:random",
        "--name",
        "second",
        "--limit",
        "2",
        "--display",
        "plain",
    )
    assert second.stdout is not None
    assert any("waiting for run first" in line for line in second.stdout)
    assert {name: state for name, (state, _, _) in states(rashomon).items()} == {"first": "running", "second": "queued"}
    rashomon.go_on()
    out, err = second.communicate(timeout=60)
    assert second.returncode == 0, out + err
    first.communicate(timeout=60)
    assert {state for state, _, _ in states(rashomon).values()} == {"done"}


def test_a_second_process_on_the_same_run_is_refused(rashomon: Rashomon) -> None:
    first = rashomon.held().start("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "x")
    wait_until(lambda: states(rashomon).get("x", ("", 0, 0))[1] > 3)
    for command in (["resume", "x"], ["resume", "x", "--repeat"]):
        stderr = rashomon.run(*command, code=4).stderr
        assert "process" in stderr
        assert "working on x" in stderr
    again = rashomon.run("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "x", code=4)
    assert again.stdout == ""
    assert again.stderr.count("\n") == 1, "one sentence"
    kill_all(first)
    rashomon.run("resume", "x")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--limit", "0"], "limit"),
        (["--prompt-set", "papre"], "did you mean 'paper'?"),
        (["--conditions", "aligned,imagecorrect"], "did you mean 'image-correct'?"),
        (["--judge", "mach"], "did you mean 'match'?"),
        (["--strata", "type=temporel"], "temporal"),
        (["--strata", "type"], "is not of the form KEY=VALUE"),
        (["--temperature", "-1"], "temperature"),
        (["--temperature", "nan"], "temperature"),
        (["--max-tokens", "many"], "max-tokens"),
        (["--data", "nowhere"], "is not a built benchmark"),
        (["--name", "../outside"], "name"),
        (["--display", "fancy"], "'fancy' is not one of 'full', 'plain', 'json', 'none'"),
        (["--lmit", "3"], "'--limit'"),
        (["--model", "policy:random", "--model", "no/such-model"], "no/such-model"),
        (["--data", "~nobody-of-that-name/x"], "home folder that does not exist"),
        (["--workspace"], "--workspace"),
        (["missing.toml"], "cannot read the spec"),
    ],
)
def test_a_wrong_command_is_one_sentence_and_exit_code_2(rashomon: Rashomon, arguments: list[str], says: str) -> None:
    message = run_of(rashomon, *arguments, code=2)
    assert says in message
    assert message.startswith("rashomon: ")
    assert len(message.splitlines()) == 1
    assert states(rashomon) == {}


def test_a_plan_refuses_an_unknown_display_as_a_run_does(tmp_path: Path) -> None:
    message = Rashomon(tmp_path).run("--batch", "paper:okvqa", "--dry-run", "--display", "xml", code=2).stderr
    assert message.startswith("rashomon: invalid value for '--display': 'xml' is not one of 'full', 'plain', ")


def test_a_command_in_json_is_one_that_can_be_completed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "an other"
    lines = Rashomon(tmp_path).run(
        "--workspace", elsewhere, "--batch", "paper:okvqa", "--dry-run", "--display", "json", code=3
    )
    command = "rashomon --workspace"
    assert f"{command} '{elsewhere}' data get okvqa" in lines.stderr
    done = Rashomon(tmp_path).run(
        *("--workspace", elsewhere, "--batch", "--benchmark", "pope", "--model", "policy:random", "--display", "json"),
        code=2,
    )
    (outcome,) = map(json.loads, done.stdout.splitlines())
    assert f"run `{command} WORKSPACE data get pope`, then `{command} WORKSPACE build pope`" in outcome["message"]
    assert "the workspace" not in outcome["message"].partition("run `")[2]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ('benchmrk = "cmc-bench"', "unknown key 'benchmrk'; did you mean 'benchmark'?"),
        ('benchmark = "cmc-bench"', "'model' is missing"),
        ('benchmark = "cmcbench"\nmodel = "policy:random"', "did you mean 'cmc-bench'?"),
        ('benchmark = "cmc-bench"\nmodel = "policy:randon"', "did you mean 'policy:random'?"),
        ('benchmark = "cmc-bench"\nmodel = "policy:random"\n[decoding]\nmax_token = 3', "did you mean 'max_tokens'?"),
        ('benchmark = "cmc-bench"\nmodel = []', "model"),
        ("benchmark = ", "not valid TOML"),
        ("model = " + "[" * 5_000, "not valid TOML"),
        ('benchmark = "cmc-bench"\nmodel = "/no/such/folder"', "/no/such/folder"),
    ],
)
def test_a_wrong_spec_names_the_key_and_the_nearest_right_word(rashomon: Rashomon, spec: str, says: str) -> None:
    path = rashomon.home / "spec.toml"
    path.write_text(spec)
    stderr = rashomon.run("--batch", path, code=2).stderr
    assert says in stderr
    assert len(stderr.splitlines()) == 1


def test_a_dry_run_checks_all_and_runs_nothing(rashomon: Rashomon) -> None:
    assert "the spec is valid, 16 instances" in run_of(rashomon, "--dry-run", "--limit", "2")
    assert states(rashomon) == {}
    for wrong in (["--strata", "nokey=1"], ["--model", "no/such-model"]):
        run_of(rashomon, "--dry-run", *wrong, code=2)
    run_of(rashomon, "--name", "x", "--limit", "1")
    assert "limit: was 1, is 2" in run_of(rashomon, "--dry-run", "--name", "x", "--limit", "2", code=2)


def test_a_dry_run_announces_what_is_left_of_a_run(rashomon: Rashomon) -> None:
    arguments = ("--dry-run", "--name", "x", "--limit", "2")
    run_of(rashomon, *arguments[1:])
    assert run_of(rashomon, *arguments) == "x: all 16 instances are answered and judged; nothing is left to run.\n"
    with RunStore.open(rashomon.workspace / "runs" / "x") as store:
        (judge,) = store.progress()[0].judged
        store.retract(judge)
    assert run_of(rashomon, *arguments) == "x: all 16 instances are answered, and 16 answers are left to judge.\n"
    with RunStore.open(rashomon.workspace / "runs" / "x") as store:
        store.repeat(["aligned"])
    announced = run_of(rashomon, *arguments)
    assert "x: the spec is valid, 14 of 16 instances are answered already" in announced
    assert "policy:uniform: about " in announced


def test_what_is_said_twice_is_done_once(rashomon: Rashomon) -> None:
    run_of(rashomon, "--judge", "match", "--judge", "match", "--model", "policy:uniform", "--name", "x", "--limit", "1")
    assert states(rashomon)["x"] == ("done", 8, 8)


def test_the_workspace_may_be_named_anywhere_and_a_value_may_be_called_batch(
    rashomon: Rashomon, tmp_path: Path
) -> None:
    data = rashomon.workspace / "benchmarks" / "cmc-bench"
    run_of(rashomon, "--data", data, "--limit", "1", "--name", "batch", "--workspace", tmp_path / "other")
    assert states(rashomon) == {}
    (run,) = rashomon.json("runs", f"--workspace={tmp_path / 'other'}")
    assert (run["name"], run["state"]) == ("batch", "done")


@pytest.mark.slow
def test_the_line_that_says_how_to_go_on_works_as_it_stands(rashomon: Rashomon, tmp_path: Path) -> None:
    other = tmp_path / "an other place"
    data = rashomon.workspace / "benchmarks" / "cmc-bench"
    process = rashomon.held().start(
        "--workspace",
        other,
        "batch",
        "--benchmark",
        "cmc-bench",
        "--model",
        "policy:uniform",
        "--name",
        "x",
        "--data",
        data,
    )
    wait_until(lambda: (other / "runs" / "x").exists() and read_summary(other / "runs" / "x").done > 3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    typed = shlex.split(err.rpartition("is saved; run `")[2].partition("`")[0])
    assert typed[0] == "rashomon"
    rashomon.run(*typed[1:])
    assert read_summary(other / "runs" / "x").state == "done"


@pytest.mark.slow
def test_interrupted_among_several_runs_it_says_to_give_the_same_command(rashomon: Rashomon) -> None:
    process = rashomon.held().start(
        "--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--model", "policy:random"
    )
    wait_until(lambda: any(done > 3 for _, done, _ in states(rashomon).values()))
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command again to resume" in err
    assert sorted(done > 0 for _, done, _ in states(rashomon).values()) == [False, True]


@pytest.mark.slow
def test_a_signal_before_there_is_a_worker_is_not_lost(rashomon: Rashomon) -> None:
    for delay in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4):
        process = rashomon.ordered(seconds=(0.05, 0.06)).start(
            "--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "x"
        )
        time.sleep(delay)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        assert "Traceback" not in err
        assert process.returncode in (130, -signal.SIGTERM), err  # the latter before Python runs our code
    assert states(rashomon).get("x", ("", 0, 0))[1] < 224


def test_a_reader_that_goes_away_ends_a_listing_and_stops_a_run(rashomon: Rashomon) -> None:
    run_of(rashomon, "--name", "x", "--limit", "4")
    listing = rashomon.start("show", "x")
    assert listing.stdout is not None
    listing.stdout.close()
    assert listing.wait(timeout=60) == 0
    batch = rashomon.ordered(seconds=(0.05, 0.06)).start(
        "--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "y", "--display", "json"
    )
    assert batch.stdout is not None
    batch.stdout.readline()
    batch.stdout.close()
    assert batch.wait(timeout=60) == 130
    assert batch.stderr is not None
    assert "run `rashomon resume y`" in batch.stderr.read()


def test_a_run_in_use_does_not_stop_the_others_of_its_model(rashomon: Rashomon) -> None:
    held = rashomon.held()
    first = held.start("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--prompt-set", "paper")
    wait_until(lambda: any(done > 3 for _, done, _ in states(rashomon).values()))
    message = run_of(rashomon, "--prompt-set", "paper", "--prompt-set", "conflict-aware", code=4)
    assert "already working on cmc-bench-policy-uniform-paper" in message
    kill_all(first)
    values = {
        name.split("-policy-uniform-")[1].rpartition("-")[0]: state for name, (state, _, _) in states(rashomon).items()
    }
    assert values == {"paper": "interrupted", "conflict-aware": "done"}


def test_a_model_without_its_key_is_refused_before_a_run_is_made(rashomon: Rashomon) -> None:
    asked = (
        "--batch",
        "--benchmark",
        "cmc-bench",
        "--model",
        "policy:random",
        "--model",
        "openai:gpt-5",
        "--limit",
        "2",
    )
    stderr = Rashomon(rashomon.workspace.parent).run(*asked, code=2).stderr
    assert "there is no key OPENAI_API_KEY" in stderr
    assert states(rashomon) == {}


def test_what_a_judge_lacks_is_said_before_anything_is_asked(rashomon: Rashomon) -> None:
    message = run_of(rashomon, "--name", "x", "--limit", "2", "--judge", "openai:gpt-5", code=2)
    assert "there is no key OPENAI_API_KEY" in message
    assert states(rashomon) == {}


def test_a_condition_that_the_run_does_not_have_is_refused(rashomon: Rashomon) -> None:
    run_of(rashomon, "--name", "x", "--limit", "1", "--conditions", "aligned")
    assert "x has no condition 'text-only'" in rashomon.run("resume", "x", "--conditions", "text-only", code=2).stderr


def test_copies_of_one_run_are_told_apart_in_tables_and_files(rashomon: Rashomon, tmp_path: Path) -> None:
    run_of(rashomon, "--name", "x", "--limit", "2")
    shutil.copytree(rashomon.workspace / "runs" / "x", tmp_path / "copy" / "x")
    rashomon.run("export", "x", tmp_path / "copy" / "x", "--out", tmp_path / "out")
    with (tmp_path / "out" / "main.csv").open(newline="") as lines:
        rows = [row["row"] for row in csv.DictReader(lines)]
    assert rows[:2] == ["x", "x (2)"]
    assert (tmp_path / "out" / "x.samples.csv").read_bytes() == (tmp_path / "out" / "x (2).samples.csv").read_bytes()


def test_a_demo_touches_nothing_that_is_not_its_own(rashomon: Rashomon) -> None:
    mine = rashomon.workspace / "rashomon-demo"
    mine.mkdir()
    (mine / "thesis.tex").write_text("years of work")
    assert "is not a demo's" in rashomon.run("demo", code=2).stderr
    assert (mine / "thesis.tex").read_text() == "years of work"


def test_a_sample_that_there_is_not_is_told_of_those_like_it(rashomon: Rashomon) -> None:
    run_of(rashomon, "--name", "x", "--limit", "2")
    stderr = rashomon.run("show", "x", "--sample", "both", code=2).stderr
    named = stderr.partition("closest: ")[2].partition(";")[0].split(", ")
    assert len(named) == 3
    assert [name.endswith("/both-wrong") for name in named] == [True, True, False]
    for name in named:
        assert name in rashomon.run("show", "x", "--sample", name).stdout


def test_a_run_of_the_demo_is_found_where_it_is(rashomon: Rashomon) -> None:
    run_of(rashomon, "--name", "demo-model-4bit", "--limit", "1")
    demo = rashomon.workspace / "rashomon-demo" / "clash"
    demo.mkdir(parents=True)
    (rashomon.workspace / "runs").rename(demo / "runs")
    stderr = rashomon.run("show", "demo-model-4bit", code=2).stderr
    command = stderr.strip().rpartition("separate workspace: rashomon ")[2]
    assert command == f"--workspace {demo} show demo-model-4bit"
    assert "demo-model-4bit: done" in rashomon.run(*command.split()).stdout
    assert "there are no runs yet" in rashomon.run("show", "another", code=2).stderr


@pytest.mark.slow
def test_a_run_that_is_no_longer_what_it_was_is_refused_with_the_difference(rashomon: Rashomon) -> None:
    run_of(rashomon, "--name", "x", "--limit", "2")
    message = run_of(rashomon, "--name", "x", "--limit", "3", code=2)
    assert "limit: was 2, is 3" in message
    spec = rashomon.workspace / "runs" / "x" / "spec.toml"
    kept = spec.read_text()
    spec.write_text(kept.replace("limit = 2", "limit = 20"))
    assert "limit: was 2, is 20" in rashomon.run("resume", "x", code=2).stderr
    spec.write_text(kept)
    upgraded = rashomon.ordered(info={"versions": {"mlx-vlm": "99"}})
    message = upgraded.run("resume", "x", code=2).stderr
    assert "version of mlx-vlm: was not set, is '99'" in message
    assert "--accept-engine" in message
    upgraded.run("resume", "x", "--accept-engine")
    assert "weights digest" in rashomon.ordered(info={"weights": "ab"}).run("resume", "x", code=2).stderr


def test_one_condition_runs_alone_and_again(rashomon: Rashomon) -> None:
    run_of(rashomon, "--name", "x", "--limit", "2", "--conditions", "aligned,both-wrong")
    parsed = rashomon.json("runs")
    assert [(c["condition"], c["done"], c["total"]) for c in parsed[0]["conditions"]] == [
        ("aligned", 2, 2),
        ("both-wrong", 2, 2),
    ]
    assert (
        "2 instances will be answered again"
        in rashomon.run("resume", "x", "--repeat", "--conditions", "aligned").stdout
    )
    assert states(rashomon)["x"] == ("done", 4, 4)


@pytest.mark.slow
def test_failures_are_told_apart_counted_and_make_the_exit_code_1(rashomon: Rashomon) -> None:
    says = {
        "/aligned": ["<think>only thoughts, cut", "length"],
        "/image-correct": ["", "stop"],
        "/text-correct": ["2008 and then it was c", "length"],
        "/both-wrong": ["", "error"],
    }
    odd = rashomon.ordered(says=says)
    message = run_of(odd, "--name", "x", "--limit", "4", code=1)
    assert "4 failed: `rashomon show x --table failures`" in message
    (table,) = rashomon.json("show", "x", "--table", "failures")["tables"]
    text = json.dumps(table)
    assert "unparsed" in text
    rows = {row["label"].rpartition(" / ")[2]: row["cells"] for row in table["rows"]}
    assert (rows["aligned"]["unparsed"], rows["aligned"]["cut_at_token_limit"]) == (4, 4)
    assert (rows["image-correct"]["unparsed"], rows["image-correct"]["cut_at_token_limit"]) == (4, 0)
    assert (rows["text-correct"]["unparsed"], rows["text-correct"]["cut_at_token_limit"]) == (0, 4)
    assert (rows["both-wrong"]["error"], rows["both-wrong"]["unparsed"]) == (4, 0)
    assert "instances will be answered again" in rashomon.run("resume", "x", "--retry-errors").stdout
    assert states(rashomon)["x"][1:] == (32, 32)


@pytest.mark.slow
def test_what_a_model_says_steers_neither_terminal_nor_spreadsheet_nor_latex(rashomon: Rashomon) -> None:
    says = {"/aligned": [ESCAPES, "stop"], "/image-correct": [FORMULA, "stop"], "/both-wrong": [LATEX, "stop"]}
    odd = rashomon.ordered(says=says)
    shown = run_of(odd, "--name", "x", "--limit", "4")
    rashomon.run("export", "x", "--out", rashomon.home / "out")
    with (rashomon.home / "out" / "samples.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    answers = {row["condition"]: row["answer"] for row in rows}
    assert answers["image-correct"] == "'" + FORMULA
    assert not [cell for row in rows for cell in row.values() if cell[:1] in "=+-@\t\r" and cell]
    samples = [json.loads(line) for line in (rashomon.home / "out" / "samples.jsonl").read_text().splitlines()]
    message = next(s["steps"][0]["text"] for s in samples if s["condition"] == "aligned")
    assert message == ESCAPES, "kept as it was said"
    single = next(s["id"] for s in samples if s["condition"] == "aligned")
    shown += rashomon.run("show", "x", "--sample", single).stdout + rashomon.run("show", "x").stdout
    assert "[red]2008[/red]" in shown, "markup is text"
    for text in (shown, *(path.read_text() for path in (rashomon.home / "out").glob("*.csv"))):
        assert not [c for c in text if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c == "\u202e"]


def test_a_workspace_that_cannot_be_written_is_told(rashomon: Rashomon, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    stderr = rashomon.run(
        "--workspace", tmp_path / "file" / "ws", "batch", "--benchmark", "cmc-bench", "--model", "policy:random",
        "--data", rashomon.workspace / "benchmarks" / "cmc-bench", code=3,
    ).stderr  # fmt: skip
    assert "cannot write in" in stderr
    assert "--workspace" in stderr


def test_a_read_only_workspace_is_told_and_its_runs_are_still_shown(rashomon: Rashomon) -> None:
    run_of(rashomon, "--name", "x", "--limit", "1")
    run_of(rashomon, "--name", "half", "--limit", "2", "--conditions", "aligned")
    rashomon.run("resume", "half", "--repeat", "--conditions", "aligned")
    runs = rashomon.workspace / "runs"
    for folder in (runs / "x", runs / "half", runs):
        folder.chmod(0o500)
    try:
        if not may_write(runs):
            assert "cannot write" in run_of(rashomon, "--name", "y", "--limit", "1", code=2)
        assert states(rashomon)["x"] == ("done", 8, 8)
        rashomon.run("show", "x")
        # Nothing is left to do, so nothing needs to be written.
        assert "instances are answered already" in rashomon.run("resume", "x").stdout
    finally:
        for folder in (runs, runs / "x", runs / "half"):
            folder.chmod(0o700)


def may_write(folder: Path) -> bool:
    """Return whether this user may write although the mode forbids it, as root may."""
    try:
        (folder / "probe").mkdir()
    except PermissionError:
        return False
    (folder / "probe").rmdir()
    return True


def test_a_build_that_moved_is_named_again_and_the_run_goes_on(rashomon: Rashomon) -> None:
    copied = rashomon.home / "copied"
    shutil.copytree(rashomon.workspace / "benchmarks" / "cmc-bench", copied)
    run_of(rashomon, "--name", "x", "--limit", "1", "--data", copied)
    shutil.move(copied, rashomon.home / "moved")
    assert "is not a built benchmark" in rashomon.run("resume", "x", code=2).stderr
    rashomon.run("resume", "x", "--data", rashomon.home / "moved")


@pytest.mark.slow
def test_a_build_that_runs_were_asked_from_is_not_replaced_without_a_word(rashomon: Rashomon, built: Path) -> None:
    sources = ("--source", built.parent.parent / "sources")
    for name in ("mine", "other"):
        run_of(rashomon, "--name", name, "--limit", "2")
    copied = rashomon.home / "copied"
    shutil.copytree(rashomon.workspace / "benchmarks" / "cmc-bench", copied)
    run_of(rashomon, "--name", "elsewhere", "--limit", "2", "--data", copied)
    before = rashomon.json("build", "cmc-bench", *sources)
    assert not before["replaced_runs"], "the same build takes nothing away"
    stderr = rashomon.run("build", "cmc-bench", *sources, "--seed", "7", code=2).stderr
    assert "add --replace" in stderr
    assert f"2 runs (mine, other) were made from the existing build ({before['digest'][:12]})" in stderr
    stderr = rashomon.run("build", "cmc-bench", *sources, "--seed", "7", "--replace").stdout
    assert f"replaced the build {before['digest'][:12]}: 2 runs (mine, other) were made from it" in stderr
    stderr = rashomon.run("resume", "mine", code=2).stderr
    assert f"data digest: was {before['digest'][:12]}, is " in stderr
    assert before["digest"] not in stderr
    assert "rebuild the former data in another folder, and name that with --data" in stderr
    rashomon.run("build", "cmc-bench", *sources, "--out", rashomon.home / "again")
    rashomon.run("resume", "mine", "--data", rashomon.home / "again")


def wait_until(condition: object, seconds: float = 120) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.05)


def test_a_judge_without_its_key_is_said_before_anything_is_answered_or_planned(rashomon: Rashomon) -> None:
    for judge, key in {"openai:gpt-5-mini": "OPENAI", "gemini:x": "GEMINI"}.items():
        message = run_of(rashomon, "--model", "policy:random", "--judge", "match", "--judge", judge, code=2)
        assert message.startswith(f"rashomon: there is no key {key}_API_KEY"), message
        assert message.count("\n") == 1
        assert states(rashomon) == {}, "not one of the models was begun"
    for judge, why in {"nobody": "no judge 'nobody'", "org/gone": "rashomon models get org/gone"}.items():
        assert why in run_of(rashomon, "--judge", "match", "--judge", judge, code=2)
    assert states(rashomon) == {}
    assert "the spec is valid" in run_of(rashomon, "--judge", "openai:gpt-5-mini", "--dry-run"), "that asks nobody"


@pytest.mark.slow
def test_a_run_that_was_begun_needs_the_keys_of_what_is_still_to_be_asked(rashomon: Rashomon) -> None:
    keyed = Rashomon(
        rashomon.home, variables={"OPENAI_API_KEY": "sk-0123456789", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    )
    agree_to("http://127.0.0.1:9")
    run_of(keyed, "--judge", "match", "--judge", "openai:x", "--name", "x", "--limit", "2", code=3)
    before = states(rashomon)
    for arguments in (["resume", "x"], ["resume", "x", "--repeat"], ["judge", "x", "--judge", "openai:x"]):
        assert rashomon.run(*arguments, code=2).stderr.startswith("rashomon: there is no key OPENAI_API_KEY")
    assert states(rashomon) == before, "nothing was set aside to be asked again"
    answers = rashomon.home / "answers.jsonl"
    answers.write_text(json.dumps({"id": first_sample(rashomon, "x"), "answer": "2008"}) + "\n")
    importing = ("import", answers, "--benchmark", "cmc-bench", "--model", "theirs", "--judge", "openai:x")
    assert "no key OPENAI_API_KEY" in rashomon.run(*importing, code=2).stderr
    assert states(rashomon) == before


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac's file names are UTF-8")
def test_a_folder_whose_name_is_no_text_is_refused_in_a_sentence(rashomon: Rashomon) -> None:
    odd = rashomon.home / os.fsdecode(b"d\xff")
    shutil.copytree(rashomon.workspace / "benchmarks" / "cmc-bench", odd)
    message = run_of(rashomon, "--data", odd, code=2)
    assert r"d\udcff': it holds half of a surrogate pair, which is not valid text" in message
    assert states(rashomon) == {}
    run_of(rashomon, "--name", "x", "--limit", "1")
    assert "answered already" in rashomon.run("resume", "x", "--data", odd).stdout, "it may lie there all the same"


def first_sample(rashomon: Rashomon, run: str) -> str:
    from app.store.run_store import RunStore

    with RunStore.read(rashomon.workspace / "runs" / run) as store:
        return next(store.records()).instance.id
