"""States that a worker records at the beginning of a run, and between its answers and a local judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.commands.system.demo_command import demo_model
from app.engine.workers.run_worker import Worker
from app.engine.workers.worker_job import Job
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from tests.support.tui_stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def test_a_run_that_waits_for_a_local_judge_is_not_done(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = (stage.run("a"), stage.run("b"))
    states: list[list[str]] = []

    def judge(worker: Worker, store: RunStore, name: str) -> None:
        states.append([read_summary(folder).state for folder in folders])

    monkeypatch.setattr(Worker, "_judge_run_with_model", judge)
    assert Worker(Job(folders, ("match", str(demo_model(4)), str(demo_model(16))))).work() == 0
    assert states == [["queued", "queued"], ["queued", "queued"], ["queued", "queued"], ["done", "queued"]]
    assert [read_summary(folder).state for folder in folders] == ["done", "done"]


@pytest.mark.parametrize(("done", "state"), [(0, "loading"), (None, "judging")])
def test_a_run_without_an_answer_is_not_judging(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, done: int | None, state: str
) -> None:
    folder = stage.run("a", state="planned", done=done)
    states = []
    monkeypatch.setattr(Worker, "_answer", lambda *_: states.append(read_summary(folder).state))
    Worker(Job((folder,), ("match",), data=stage.path)).work()
    assert states == [state]
