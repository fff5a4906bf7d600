"""Again next week: a table of own rows with one corrected cell, by the command line and in real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from app.engine import reused_answers as lenders
from app.store.reusable_answers import ReusedAnswers
from app.store.run_store import RunStore
from tests.support.command import Rashomon
from tests.support.demo import FOUR_BIT, write_table
from tests.support.seeing_server import SeeingServer, seeing

ROWS = 2


def build(rashomon: Rashomon, name: str, **edit: str) -> Path:
    table = write_table(rashomon.home / "tables", ROWS, name, edit)
    rashomon.run("build", "cmc-bench", "--from", table, "--out", rashomon.home / name)
    return rashomon.home / name


def batch(name: str, data: Path, *options: str | Path, model: str | Path = FOUR_BIT) -> list[str | Path]:
    return [
        *("--batch", "--benchmark", "cmc-bench", "--data", data, "--model", model, "--name", name),
        *("--max-tokens", "12", "--display", "none", *options),
    ]


def calls(rashomon: Rashomon, name: str) -> int:
    with RunStore.read(rashomon.workspace / "runs" / name) as store:
        return store.answer_usage()[0]


def reused(rashomon: Rashomon, name: str) -> ReusedAnswers:
    with RunStore.read(rashomon.workspace / "runs" / name) as store:
        return ReusedAnswers.load(store)


def exported(rashomon: Rashomon, name: str) -> dict[str, bytes]:
    """All tables and samples of a run, without what may differ between two runs with the same answers."""
    out = rashomon.home / f"export-{name}-{time.monotonic_ns()}"
    rashomon.run("export", name, "--format", "csv,json", "--canonical", "--out", out)
    return {path.name: path.read_bytes() for path in out.iterdir()}


def answers(files: dict[str, bytes]) -> list[Any]:
    samples = map(json.loads, files["samples.jsonl"].splitlines())
    return [(sample["id"], sample["answer"], sample["verdicts"]) for sample in samples]


@pytest.mark.slow
def test_one_corrected_cell_is_asked_about_and_all_else_reused(tmp_path: Path) -> None:
    rashomon, fresh = Rashomon(tmp_path / "a"), Rashomon(tmp_path / "b")
    for home in (rashomon, fresh):
        home.home.mkdir()
    rashomon.run(*batch("week1", build(rashomon, "first"), "--exact"))
    rashomon.run(*batch("week2", build(rashomon, "second", passage="In the end, kale came to 68."), "--exact"))
    fresh.run(*batch("week2", build(fresh, "second", passage="In the end, kale came to 68."), "--exact"))
    shown, expected = (home.json("show", "week2") for home in (rashomon, fresh))
    assert (shown["headlines"], shown["tables"]) == (expected["headlines"], expected["tables"])
    assert 0 < calls(rashomon, "week2") < calls(fresh, "week2") / 2
    counts = reused(rashomon, "week2")
    assert sum(counts.lenders.values()) + calls(rashomon, "week2") == counts.answers == 8 * ROWS
    sentence = f"{sum(counts.lenders.values())} of {counts.answers} answers reused from week1"
    assert sentence in rashomon.run("show", "week2").stdout
    assert f"{sum(counts.lenders.values())} reused" in rashomon.run("runs").stdout
    assert rashomon.json("runs")[1]["reused"] == sum(counts.lenders.values())
    (spec,) = rashomon.json("show", "week2", "--spec")["specs"]
    assert [lender["name"] for lender in spec["reused"]["lenders"]] == ["week1"]
    with RunStore.read(rashomon.workspace / "runs" / "week2") as store:
        sample = next(record for record in store.records() if record.generations[0].is_reused)
    assert "reused from week1: " in rashomon.run("show", "week2", "--sample", sample.instance.id).stdout


def test_fresh_asks_everything_and_is_another_run(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    data = build(rashomon, "first")
    options = ("--exact", "--conditions", "text-only")
    rashomon.run(*batch("week1", data, *options))
    rashomon.run(*batch("week2", data, *options, "--fresh"))
    assert not reused(rashomon, "week2").lenders
    assert calls(rashomon, "week2") == calls(rashomon, "week1")
    assert rashomon.run(*batch("week1", data, *options, "--fresh"), code=2).stderr.count("fresh") >= 1
    rashomon.run(*batch("policy1", data, model="policy:always-text"))
    rashomon.run(*batch("policy2", data, model="policy:always-text"))
    assert not reused(rashomon, "policy2").lenders, "what a policy answers is not all in its request"


def test_a_received_run_lends_nothing_before_or_after_it_is_adopted(tmp_path: Path) -> None:
    theirs, ours = Rashomon(tmp_path / "a"), Rashomon(tmp_path / "b", variables={"XDG_STATE_HOME": str(tmp_path / "s")})
    for home in (theirs, ours):
        home.home.mkdir()
    options = ("--exact", "--conditions", "text-only")
    data = build(theirs, "first")
    theirs.run(*batch("week1", data, *options))
    (ours.workspace / "runs").mkdir(parents=True)
    shutil.copytree(theirs.workspace / "runs" / "week1", ours.workspace / "runs" / "week1")
    ours.run(*batch("week2", data, *options))
    assert not reused(ours, "week2").lenders
    shutil.rmtree(ours.workspace / "runs" / "week2")
    ours.run("adopt", "week1", "--name", "adopted", "--data", data, "--yes")
    ours.run(*batch("week3", data, *options))
    assert not reused(ours, "week3").lenders
    ours.run(*batch("week4", data, *options))
    assert reused(ours, "week4").lenders, "its own runs lend"


def test_answers_of_a_server_are_checked_and_differences_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lenders, "CHECK_EVERY", 2)
    rashomon = Rashomon(tmp_path)
    first, second = build(rashomon, "first"), build(rashomon, "second", passage="In the end, kale came to 68.")
    with seeing(SeeingServer("colours")) as server:
        model = f"endpoint:m@{server.url}"
        rashomon.run(*batch("week1", first, model=model))
        rashomon.run(*batch("week2", second, model=model))
        same = reused(rashomon, "week2")
        assert same.lenders
        assert same.checked > 0
        assert same.differing == 0
        server.eyes = "constant"  # another model behind the same name
        rashomon.run(*batch("week3", second, "--force", model=model))
    other = reused(rashomon, "week3")
    assert 0 < other.differing <= other.checked
    assert f"{other.differing} differ" in rashomon.run("show", "week3").stdout


@pytest.mark.slow
def test_any_edits_give_the_tables_of_a_fresh_run_over_a_server(tmp_path: Path) -> None:
    edits: list[dict[str, Any]] = [
        {"answer": "70"},
        {"question": "What is kale's value?"},
        {"image": "held_out/cmc-bench/charts/003.png"},
        {"passage": ""},
        {"conflict": "71"},
        {"group": "another"},
    ]
    rashomon = Rashomon(tmp_path / "a")
    rashomon.home.mkdir()
    with seeing(SeeingServer("colours")) as server:
        model = f"endpoint:m@{server.url}"
        rashomon.run(*batch("run", build(rashomon, "first"), model=model))
        for number, edit in enumerate(edits):
            fresh = Rashomon(tmp_path / f"b{number}")
            fresh.home.mkdir()
            for home in (rashomon, fresh):
                home.run(*batch(f"run{number}", build(home, f"edit{number}", **edit), model=model))
            ours, theirs = (exported(home, f"run{number}") for home in (rashomon, fresh))
            for name in ours.keys() - {
                "samples.csv",
                "samples.jsonl",
            }:  # of equal requests in a run, one has the tokens
                assert ours[name] == theirs[name], (edit, name)
            assert answers(ours) == answers(theirs), edit
            assert reused(rashomon, f"run{number}").lenders


@pytest.mark.slow
def test_a_kill_while_answers_are_reused_loses_nothing(tmp_path: Path) -> None:
    rashomon, fresh = Rashomon(tmp_path / "a"), Rashomon(tmp_path / "b")
    for home in (rashomon, fresh):
        home.home.mkdir()
    rashomon.run(*batch("week1", build(rashomon, "first"), "--exact"))
    command = batch("week2", build(rashomon, "second", answer="70"), "--exact")
    for seconds in (1.0, 2.0, 2.5, 3.0):
        process = rashomon.start(*command)
        time.sleep(seconds)
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    rashomon.process(*command)
    fresh.run(*batch("week2", build(fresh, "second", answer="70"), "--exact"))
    assert exported(rashomon, "week2") == exported(fresh, "week2")
    rashomon.run("doctor", "week2")


@pytest.mark.slow
def test_two_runs_at_once_end_as_alone(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rashomon.run(*batch("week1", build(rashomon, "first"), "--exact"))
    second = build(rashomon, "second", answer="70")
    started = [rashomon.start(*batch(name, second, "--exact")) for name in ("week2", "week3")]
    for process in started:
        process.communicate()
        assert process.returncode == 0
    first, other = (exported(rashomon, name) for name in ("week2", "week3"))
    assert first["samples.jsonl"] == other["samples.jsonl"]
    assert first["main.csv"] == other["main.csv"]


@pytest.mark.slow
def test_a_run_that_stops_early_stops_where_a_fresh_one_does(tmp_path: Path) -> None:
    rashomon, fresh = Rashomon(tmp_path / "a"), Rashomon(tmp_path / "b")
    options = ("--conditions", "text-only,aligned", "--until-width", "0.9")
    with seeing(SeeingServer("colours")) as server:
        model = f"endpoint:m@{server.url}"
        for home in (rashomon, fresh):
            home.home.mkdir()
        rashomon.run(*batch("week1", build(rashomon, "first"), model=model))
        for home in (rashomon, fresh):
            home.run(
                *batch("week2", build(home, "second", passage="In the end, kale came to 68."), *options, model=model)
            )
    assert reused(rashomon, "week2").lenders
    assert answers(exported(rashomon, "week2")) == answers(exported(fresh, "week2"))
