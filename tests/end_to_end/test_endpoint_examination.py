"""Runs over a server that is examined: good, blind from the start, and blind later."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from app.store.run_store import RunStore
from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Media
from tests.support.command import ROOT, Rashomon
from tests.support.seeing_server import SeeingServer, seeing

pytestmark = pytest.mark.slow

AFTER_A_CHECK = 3 + 12 + 1 + 3
"""Calls of the examination, of twelve answers (eight with a picture, and those in flight), of a spot check, and three more."""

RUN = ("--batch", "--benchmark", "cmc-bench", "--limit", "3", "--name", "r", "--concurrency", "2")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("endpoints") / "cmc-bench"
    rows = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", rows)], folder, BuildOptions())
    return folder


@pytest.fixture
def rashomon(built: Path, tmp_path: Path) -> Rashomon:
    shutil.copytree(built, tmp_path / "workspace" / "benchmarks" / "cmc-bench")
    return Rashomon(tmp_path)


def model(server: SeeingServer) -> tuple[str, ...]:
    return ("--model", f"endpoint:m@{server.url}", "--allow-address", server.url.removesuffix("/v1"))


def stored(rashomon: Rashomon) -> tuple[int, list[dict[str, Any]], tuple[int, int, int]]:
    """The answers that count, the examinations and the usage of the run."""
    with RunStore.read(rashomon.workspace / "runs" / "r") as store:
        answers = sum(progress.done for progress in store.progress())
        return answers, store.meta("endpoint", []), store.answer_usage()


def test_good_server_is_examined_once_and_every_call_is_counted(rashomon: Rashomon) -> None:
    with seeing(SeeingServer()) as server:
        dry = rashomon.run(*RUN, *model(server), "--dry-run").stdout
        assert "calls of these to examine the server" in dry
        assert server.calls == []
        rashomon.run(*RUN, *model(server), "--limit", "2")
        answers, checks, usage = stored(rashomon)
        assert [check["evidence"] for check in checks] == ["number"]
        assert usage[0] == len(server.calls)
        assert len(server.calls) < answers + 8
        shown = rashomon.run("show", "r").stdout
        assert "the model read a number in a picture" in shown
        before = len(server.calls)
        rashomon.run("resume", "r")
        assert len(server.calls) == before, "nothing is left to answer, so nothing is examined"


def test_blind_server_is_refused_before_the_first_answer(rashomon: Rashomon) -> None:
    with seeing(SeeingServer("blind", "text")) as server:
        refused = rashomon.run(*RUN, *model(server), code=3)
        assert "drops pictures" in refused.stderr
        assert stored(rashomon)[0] == 0
        assert len(server.calls) <= 7
        rashomon.run(*RUN, *model(server), "--force")
        answers, checks, _ = stored(rashomon)
        assert answers == 24
        assert "drops pictures" in checks[-1]["problem"]


def test_answers_since_the_last_good_check_are_requested_again(rashomon: Rashomon) -> None:
    server = SeeingServer(later="blind", after=AFTER_A_CHECK)
    with seeing(server):
        failed = rashomon.run(*RUN, *model(server), code=3)
        assert "since the last check" in failed.stderr
        answers, checks, usage = stored(rashomon)
        assert 0 < answers < 24, "answers without a picture still count"
        assert checks[-1]["problem"]
        assert usage[0] <= len(server.calls), "calls in flight at the end are not recorded"
        server.later = None  # repaired
        rashomon.run("resume", "r")
        answers, checks, _ = stored(rashomon)
    assert answers == 24
    assert checks[-1]["problem"] == ""
    with RunStore.read(rashomon.workspace / "runs" / "r") as store:
        texts = [(record, record.generations[-1].text) for record in store.records()]
    pictured = [text for record, text in texts if any(isinstance(part, Media) for part in record.instance.parts)]
    assert len(pictured) == 18
    assert all(text.startswith("It shows ") for text in pictured), "no answer of the blind server is left"


def test_server_that_stays_blind_is_refused_when_the_run_resumes(rashomon: Rashomon) -> None:
    server = SeeingServer(usage="none", later="blind", after=AFTER_A_CHECK)
    with seeing(server):
        rashomon.run(*RUN, *model(server), code=3)
        before = stored(rashomon)[0]
        rashomon.run("resume", "r", code=3)
        assert stored(rashomon)[0] == before
        server.later = None  # repaired
        rashomon.run("resume", "r")
        assert stored(rashomon)[0] == 24


def test_server_that_answers_nothing_ends_the_run_at_once_with_its_message(rashomon: Rashomon) -> None:
    server = SeeingServer("blind", habit=lambda response: {"error": {"message": "model 'm' not found", "code": 404}})
    with seeing(server):
        refused = rashomon.run(*RUN, *model(server), code=3)
        assert "model 'm' not found" in refused.stderr
        assert len(server.calls) == 3
        rashomon.run(*RUN, *model(server), "--force", code=1)
        shown = rashomon.run("show", "r").stdout
    assert "24 errors: HTTP 404: model 'm' not found" in shown


def test_usage_of_the_examination_is_part_of_the_ceiling(rashomon: Rashomon) -> None:
    with seeing(SeeingServer()) as server:
        ended = rashomon.run(*RUN, *model(server), "--token-ceiling", "300", code=3)
    assert "ceiling" in ended.stderr
    assert stored(rashomon)[0] == 0
