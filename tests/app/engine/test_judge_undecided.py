"""A model that is asked for what a judge by rule leaves undecided, and for nothing else: in a run, an import and afterwards."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app.store.run_store import RunStore
from app.store.workspace import Workspace
from tests.app.engine.test_judge_faults import make_run
from tests.support.charts import draw_sources
from tests.support.command import Rashomon
from tests.support.fault_server import FaultServer

COUNT, UNDECIDED = 24, 8


def answer(number: int) -> str:
    if number % 3:
        return f"{1950 + number % 50}"
    return f"The picture has {1950 + number % 50} while the passage has {2001 + number % 20}, so one may wonder."


@pytest.fixture
def rashomon(tmp_path: Path) -> Rashomon:
    return Rashomon(tmp_path)


def statuses(rashomon: Rashomon, judge: str) -> list[str | None]:
    with RunStore.read(rashomon.workspace / "runs" / "r") as store:
        (judge_id,) = {id_ for p in store.progress() for id_ in p.judged if id_.startswith(judge)}
        return [r.verdicts[judge_id].status if judge_id in r.verdicts else None for r in store.records()]


def test_a_model_is_asked_once_for_each_undecided_answer(rashomon: Rashomon) -> None:
    make_run(Workspace(rashomon.workspace), COUNT, answer)
    with FaultServer(lambda *_: '{"label": "BOTH"}') as server:
        judge = f"first(match, endpoint:judge@{server.url})"
        dry = rashomon.run("judge", "r", "--judge", judge, "--dry-run").stdout.splitlines()
        assert [re.findall(r": (\d+) answers to judge|those of (\d+) that match", line) for line in dry] == [
            [(str(COUNT), "")],
            [("0", ""), ("", str(COUNT))],
        ]
        rashomon.run("judge", "r", "--judge", judge)
        rashomon.run("judge", "r", "--judge", judge)
        assert server.requests == UNDECIDED
    rule, model = statuses(rashomon, "match@"), statuses(rashomon, "endpoint:")
    assert rule.count("undecided") == UNDECIDED
    assert [status for status in model if status] == ["labelled"] * UNDECIDED
    assert all((one == "undecided") == (two == "labelled") for one, two in zip(rule, model, strict=True))
    shown = rashomon.run("show", "r", "--judge", judge, "--json").stdout
    assert "first(match@" in shown


def test_imported_answers_are_done_and_shown_by_both(rashomon: Rashomon) -> None:
    draw_sources(rashomon.home / "sources")
    rashomon.run("build", "cmc-bench", "--source", rashomon.home / "sources")
    asked = ["--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "here", "--limit", "6"]
    rashomon.run(*asked)
    with RunStore.read(rashomon.workspace / "runs" / "here") as store:
        ids = [record.instance.id for record in store.records()]
    file = rashomon.home / "answers.jsonl"
    file.write_text("".join(json.dumps({"id": id_, "answer": answer(3 * n)}) + "\n" for n, id_ in enumerate(ids)))
    with FaultServer(lambda *_: '{"label": "BOTH"}') as server:
        judge = f"first(match, endpoint:judge@{server.url})"
        rashomon.run("import", file, "--benchmark", "cmc-bench", "--model", "m", "--name", "r", "--judge", judge)
        assert server.requests == statuses(rashomon, "match@").count("undecided") > 0
        rashomon.run("resume", "r")
    assert {run["name"]: run["state"] for run in rashomon.json("runs")}["r"] == "done"
    assert "Labels by first(match@" in rashomon.run("show", "r", "--table", "main").stdout
    rashomon.run("export", "r", "--format", "json")
    lines = (rashomon.home / "export" / "r" / "samples.jsonl").read_text().splitlines()
    by_panel = [
        verdict
        for line in lines
        for judge, verdict in json.loads(line)["verdicts"].items()
        if judge.startswith("first(match@")
    ]
    assert [verdict["status"] for verdict in by_panel] == ["labelled"] * len(ids)


def test_a_run_asks_for_what_is_undecided_while_it_answers(rashomon: Rashomon) -> None:
    draw_sources(rashomon.home / "sources")
    rashomon.run("build", "cmc-bench", "--source", rashomon.home / "sources")
    with FaultServer(lambda *_: '{"label": "BOTH"}') as server:
        judge = f"first(match, endpoint:judge@{server.url})"
        asked = ["--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "r", "--limit", "6"]
        rashomon.run(*asked, "--judge", judge)
        again = rashomon.run(*asked, "--judge", judge).stdout
        assert server.requests == statuses(rashomon, "match@").count("undecided")
    assert "nothing is left to run" in again or "answered already" in again
    assert {run["name"]: run["state"] for run in rashomon.json("runs")}["r"] == "done"


@pytest.mark.parametrize(
    "judge",
    [
        "majority(match, openai:m)",
        "first(openai:m, match)",
        "first(match, strict)",
        "first(match, openai:m",
        "first(match)",
    ],
)
def test_other_panels_judge_nothing(rashomon: Rashomon, judge: str) -> None:
    make_run(Workspace(rashomon.workspace), 4, answer)
    rashomon.run("judge", "r", "--judge", judge, code=2)
    rashomon.run("judge", "r", "--judge", "first(match, openai:m)", "--judge", "openai:n", code=2)
