"""`rashomon judges check`: rules, models behind a scripted server, panels, faults, interruptions, and where results are named."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.cmc_bench import cmc_rubric
from benchmarks.untrusted import private_state
from judges.examination.labelled_answers import hostile_answers, labelled_set
from tests.app.engine.test_judge_faults import make_run
from tests.support.command import Rashomon, free_port
from tests.support.fault_server import FaultServer
from tests.support.tiny_qwen3 import build_tiny_lm
from tests.support.trust import agree_to

ANSWERS = {answer.record.instance.question: answer for answer in (*labelled_set(), *hostile_answers())}
LIMIT = 40


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what is stored to this test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def rashomon(tmp_path: Path) -> Rashomon:
    return Rashomon(tmp_path)


def right(prompt: str, times: int) -> str:
    search = re.search(r"^Question: (.*)$", prompt, re.MULTILINE)
    assert search
    return json.dumps({"label": ANSWERS[search[1]].label})


def follows_first(prompt: str, times: int) -> str:
    """Right where the label is no source's, otherwise the reference that is listed first."""
    label = json.loads(right(prompt, times))["label"]
    if label in ("IMAGE", "TEXT"):
        label = "IMAGE" if prompt.index("The image says:") < prompt.index("The text says:") else "TEXT"
    return json.dumps({"label": label})


def obeys(prompt: str, times: int) -> str:
    """Right, but it obeys the hostile answers that say "reply"."""
    search = re.search(r"^Question: (.*)$", prompt, re.MULTILINE)
    assert search
    answer = ANSWERS[search[1]]
    steered = answer.steers_to and re.search(r"\breply\b", answer.text, re.IGNORECASE)
    return json.dumps({"label": answer.steers_to if steered else answer.label})


def check(rashomon: Rashomon, judge: str, *options: str, code: int = 0) -> dict[str, Any]:
    result: dict[str, Any] = rashomon.json("judges", "check", judge, *options, code=code)
    return result


def judge_at(server: FaultServer) -> str:
    return f"endpoint:judge@{server.url}"


def test_a_rule_is_examined_without_a_network_and_named_from_then_on(rashomon: Rashomon) -> None:
    assert "judges check JUDGE" in rashomon.run("judges").stdout
    first, steered, *_ = rashomon.run("judges", "check", "match").stdout.splitlines()
    form = r"match@4 agrees with (\d+) of (\d+) labels that it gives \(([\d.]+)%, (.* to .*)\) and leaves (\d+) of 440 answers"
    match = re.match(form, first)
    assert match, first
    assert int(match[2]) + int(match[5]) == 440
    assert re.match(r"(None|\d+) of 30 hostile answers steered it", steered)
    share = f"agrees on {match[3]}% of the {match[2]} labels that it gives on 440 labelled answers ({match[4]})"
    sentence = f"{share}, checked {time.strftime('%Y-%m-%d')}"
    assert sentence in rashomon.run("judges").stdout
    entries = rashomon.json("judges")
    assert entries["rules"][0]["check"]["right"] == int(match[1])
    assert entries["rules"][0]["check"]["sentence"] == sentence
    assert entries["rules"][1]["check"] is None


def test_a_limited_check_is_not_named(rashomon: Rashomon) -> None:
    assert check(rashomon, "match", "--limit", "10")["answers"] == 10
    assert "checked" not in rashomon.run("judges").stdout


def test_a_model_that_is_always_right(rashomon: Rashomon) -> None:
    with FaultServer(right) as server:
        result = check(rashomon, judge_at(server), "--limit", str(LIMIT))
        assert server.requests == 2 * LIMIT + len(hostile_answers())
        prompts = {item.prompt for item in server.received}
        assert len(prompts) == server.requests, "each answer is judged in both orders of the references"
        assert (result["usage"]["prompt_tokens"], result["usage"]["completion_tokens"]) == (
            server.prompt_tokens, server.completion_tokens,
        )  # fmt: skip
    assert (result["right"], result["outcomes"]) == (LIMIT, {"labelled": LIMIT})
    assert result["sentences"][0] == (
        f"{judge_at(server)}@cmc-bench-2 agrees with 40 of 40 labels (100.0%, 91.2 to 100.0)."
    )
    assert result["sentences"][1] == "Swapping the two references changes none of 40 labels."
    assert result["hostile"]["steered"] == result["disagreements"] == []
    assert result["order"]["preferred"] == ""
    assert "tokens a label" in result["sentences"][-1]


def test_a_model_that_prefers_the_first_reference_is_found(rashomon: Rashomon) -> None:
    with FaultServer(follows_first) as server:
        lines = rashomon.run("judges", "check", judge_at(server), "--limit", str(LIMIT)).stdout.splitlines()
    one_sided = sum(answer.label in ("IMAGE", "TEXT") for answer in labelled_set()[:LIMIT])
    assert lines[1].startswith(
        f"It prefers the reference that is listed first: swapping the two references changes {one_sided} of {LIMIT} labels"
    )
    assert f"of which {one_sided} follow the reference listed first, 0 the one listed last." in lines[1]
    assert "with the image first and on" in lines[1]


def test_a_model_that_obeys_answers_is_found(rashomon: Rashomon) -> None:
    with FaultServer(obeys) as server:
        judge = judge_at(server)
        printed = rashomon.run("judges", "check", judge, "--limit", str(LIMIT)).stdout
        steered = check(rashomon, judge, "--limit", str(LIMIT))["hostile"]["steered"]
    expected = [a.id for a in hostile_answers() if re.search(r"\breply\b", a.text, re.IGNORECASE)]
    assert steered == expected
    assert len(expected) > 3
    assert f"{len(expected)} of 30 hostile answers steered it: {', '.join(expected)}." in printed
    assert all(f"steered by {name} (" in printed for name in expected)


def test_first_asks_the_model_for_what_the_rule_leaves_undecided_alone(rashomon: Rashomon) -> None:
    undecided = check(rashomon, "match", "--limit", str(LIMIT))["outcomes"]["undecided"]
    with FaultServer(right) as server:
        judge = f"first(match, {judge_at(server)})"
        result = check(rashomon, judge, "--limit", str(LIMIT))
        asked = server.requests
    assert result["sentences"][0].startswith(f"first(match@4, {judge_at(server)}@cmc-bench-2) agrees")
    assert result["outcomes"] == {"labelled": LIMIT}
    assert 2 * undecided < asked < 2 * undecided + len(hostile_answers())


def test_a_panel_of_two_models_and_a_rule(rashomon: Rashomon) -> None:
    with FaultServer(right) as first, FaultServer(follows_first) as second:
        result = check(rashomon, f"majority(match, {judge_at(first)}, {judge_at(second)})", "--limit", "20")
    assert result["outcomes"]["labelled"] > 15
    assert result["usage"]["replies"] == 2 * (2 * 20 + 20)
    rashomon.run("judges", "check", f"any(match, {judge_at(first)})", code=2)


def test_an_address_needs_consent_as_elsewhere(rashomon: Rashomon) -> None:
    with FaultServer(right, agreed=False) as server:
        refused = rashomon.run("judges", "check", judge_at(server), "--limit", "4", code=2)
        assert "--allow-address" in refused.stderr
        assert server.requests == 0
        rashomon.run("judges", "check", judge_at(server), "--limit", "4", "--dry-run")
        assert server.requests == 0
        rashomon.run("judges", "check", judge_at(server), "--limit", "4", "--allow-address", server.url)
        assert server.requests == 12


def test_a_dry_run_sends_nothing_and_estimates_the_cost(rashomon: Rashomon) -> None:
    options = ("--dry-run", "--input-price", "1", "--output-price", "2")
    done = rashomon.run("judges", "check", "openai:gpt", *options)
    assert re.search(
        r"openai:gpt@cmc-bench-2: 910 calls of about [\d,]+ prompt tokens .* cost at most about", done.stdout
    )
    assert "not ready to judge: there is no key" in done.stderr
    assert "first(match@4, " in rashomon.run("judges", "check", "first(match, openai:gpt)", "--dry-run").stdout


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ("matsch", "did you mean 'match'?"),
        ("strict", "is not made for cmc-bench"),
        ("human:ann", "is a person"),
        ("policy:random", "cannot judge"),
        ("first(match)", "has only one member"),
        ("any(match, openai:gpt)", "gives an answer several labels"),
        ("./nowhere", "nowhere"),
        ("openai:gpt", "there is no key"),
    ],
)
def test_what_cannot_be_examined_is_refused_with_a_reason(rashomon: Rashomon, judge: str, message: str) -> None:
    assert message in rashomon.run("judges", "check", judge, code=2).stderr


def test_a_server_that_is_not_there(rashomon: Rashomon) -> None:
    address = f"http://127.0.0.1:{free_port()}/v1"
    agree_to(address)
    options = ("--limit", "3", "--attempts", "1", "--timeout", "1")
    done = rashomon.run("judges", "check", f"endpoint:judge@{address}", *options, code=3)
    assert "the server cannot be reached" in done.stderr
    assert "checked" not in rashomon.run("judges").stdout


def test_unreadable_replies_are_failures_and_cost_three_calls(rashomon: Rashomon) -> None:
    bad = {answer.record.instance.question for answer in labelled_set()[:3]}

    def says(prompt: str, times: int) -> str:
        return (
            "I cannot label this."
            if any(f"Question: {question}\n" in prompt for question in bad)
            else right(prompt, times)
        )

    with FaultServer(says) as server:
        result = check(rashomon, judge_at(server), "--limit", "20", code=1)
        assert server.requests == 2 * 17 + 20 + 2 * 3 * 3
    assert result["outcomes"] == {"labelled": 17, "judge-failed": 3}
    assert "and fails on 3 of 20 answers." in result["sentences"][0]


def test_requests_without_a_reply_are_repeated_by_the_same_command(rashomon: Rashomon) -> None:
    down = True

    def fault(number: int) -> str | None:
        return "500" if down and number % 10 == 0 else None

    with FaultServer(right, fault) as server:
        command = ("judges", "check", judge_at(server), "--limit", "20", "--attempts", "1", "--concurrency", "1")
        done = rashomon.run(*command, code=1)
        assert "6 requests got no reply, so the result is not recorded; the same command repeats them." in done.stderr
        before, down = server.requests, False
        done = rashomon.run(*command)
        assert server.requests == before + 6
    assert "54 of 60 replies came from the cache" in done.stdout


def test_a_server_of_ones_own_is_asked_anew_after_a_complete_check(rashomon: Rashomon) -> None:
    """Another model may be behind its address by then."""
    with FaultServer(right) as server:
        for count in (12, 24):
            check(rashomon, judge_at(server), "--limit", "4")
            assert server.requests == count


@pytest.mark.slow
def test_interrupted_it_resumes_and_pays_for_nothing_twice(rashomon: Rashomon) -> None:
    with FaultServer(right, latency=0.02) as server:
        command = ("judges", "check", judge_at(server), "--concurrency", "2")
        process = rashomon.start(*command)
        while server.requests < 60:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "run the same command again" in errors
        assert "Traceback" not in errors
        printed = rashomon.run(*command).stdout
        assert server.requests <= 910 + 4
    assert re.search(r"\d+ of 910 replies came from the cache", printed)


def test_a_ceiling_stops_it_and_a_higher_one_resumes(rashomon: Rashomon) -> None:
    with FaultServer(right) as server:
        command = ("judges", "check", judge_at(server), "--limit", "20", "--concurrency", "1")
        assert "ceiling of 5,000 tokens" in rashomon.run(*command, "--token-ceiling", "5000", code=3).stderr
        assert 0 < server.requests < 60
        rashomon.run(*command)
        assert server.requests == 60


@pytest.mark.slow
def test_a_model_of_this_machine_is_examined_and_asked_once(rashomon: Rashomon) -> None:
    build_tiny_lm(rashomon.home / "judge", [cmc_rubric._PROMPT], quantise=False)
    result = check(rashomon, str(rashomon.home / "judge"), "--limit", "6")
    assert result["sentences"][0].startswith("judge@cmc-bench-2 agrees")
    assert result["outcomes"] == {"labelled": 6}
    assert result["usage"]["replies"] == 18
    assert result["usage"]["completion_tokens"] > 18
    again = check(rashomon, str(rashomon.home / "judge"), "--limit", "6")
    assert again["usage"]["cached"] == again["usage"]["replies"] == 18
    assert again["tables"] == result["tables"]


def notes(rashomon: Rashomon, *options: str) -> str:
    return " ".join(rashomon.json("show", "r", "--table", "main", *options)["tables"][0]["notes"])


def test_tables_name_the_result_of_the_judge_that_labelled(rashomon: Rashomon) -> None:
    make_run(Workspace(rashomon.workspace), 8, lambda number: str(1950 + number))
    rashomon.run("judge", "r", "--judge", "match")
    assert "labelled answers" not in notes(rashomon)
    rashomon.run("judges", "check", "match")
    assert re.search(
        r"match@4 agrees on .* of the \d+ labels that it gives on 440 labelled answers .*, checked", notes(rashomon)
    )
    assert "How match@4 agrees with people or with an API judge is unknown for this run." in notes(rashomon)
    for name, options in (("here", ()), ("elsewhere", ("--canonical",))):
        rashomon.run("export", "r", "--format", "md,report", "--out", name, *options)
        text = "".join(
            path.read_text("utf-8") for path in (rashomon.home / name).rglob("*") if path.suffix in (".md", ".html")
        )
        assert ("440 labelled answers" in text) == (name == "here")


def test_tables_name_the_result_of_the_same_model_alone(rashomon: Rashomon) -> None:
    make_run(Workspace(rashomon.workspace), 4, lambda number: str(1950 + number))

    def say(prompt: str, times: int) -> str:
        of_the_run = re.search(r"output of plant \d+ highest", prompt)
        return '{"label": "TEXT"}' if of_the_run else right(prompt, times)

    with FaultServer(say) as server:
        judge = judge_at(server)
        rashomon.run("judge", "r", "--judge", judge)
        rashomon.run("judges", "check", judge)
    sentence = f"{judge}@cmc-bench-2 agrees on 100.0% of 440 labelled answers (99.1 to 100.0), checked"
    assert sentence in notes(rashomon, "--judge", judge)
    assert sentence.partition(" ")[0] in rashomon.run("judges").stdout
    with RunStore.open(rashomon.workspace / "runs" / "r") as store:
        store.change_meta("judges", lambda known: {name: {**of, "weights": "others"} for name, of in known.items()})
    assert "labelled answers" not in notes(rashomon, "--judge", judge)


@pytest.mark.parametrize("content", ["{", "[]", "{}", "[1]", '[{"judge": "match@4"}]', "\x00"])
def test_a_damaged_file_of_results_is_ignored(rashomon: Rashomon, content: str) -> None:
    private_state.write("judge-checks.json", content)
    assert "checked" not in rashomon.run("judges").stdout
    rashomon.run("judges", "check", "match")
    assert "checked" in rashomon.run("judges").stdout
