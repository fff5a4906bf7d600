"""States of a run as other processes see them, while workers begin, end and die."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.store.file_locks import FileLock
from app.store.run_summary import SUPERVISOR_FILE, read_summary, worker_text
from app.store.summary_cache import Summaries
from tests.support.runs import read_all
from tests.support.tui_stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def just_before_the_lock_is_checked(monkeypatch: pytest.MonkeyPatch, event: Callable[[], None]) -> None:
    """Have ``event`` happen after the next reading of a run's database, before its lock is checked."""
    holder = FileLock.holder

    def check(lock: FileLock) -> str | None:
        monkeypatch.setattr(FileLock, "holder", holder)
        event()
        return holder(lock)

    monkeypatch.setattr(FileLock, "holder", check)


def test_a_worker_that_ends_while_its_run_is_read_did_not_vanish(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = stage.run("r", state="running", done=3)

    def fail() -> None:
        stage.note(folder, "failed", "the model is gone.")
        stage.die(folder)

    just_before_the_lock_is_checked(monkeypatch, fail)
    run = read_summary(folder)
    assert (run.state, run.note) == ("failed", "the model is gone.")


def test_a_worker_that_stops_early_between_two_readings_did_not_vanish(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = stage.run("r", state="running", done=3)
    summaries = Summaries(stage.workspace)
    read_all(summaries)

    def stop() -> None:
        stage.note(folder, "stopped", "narrow enough")
        stage.die(folder)

    just_before_the_lock_is_checked(monkeypatch, stop)
    assert [run.state for run in read_all(summaries)] == ["stopped"]


@pytest.mark.parametrize("recorded", ["queued", "loading", "running", "judging", "interrupted", "failed", "stopped"])
def test_a_run_whose_worker_is_starting_is_planned_until_it_has_begun(stage: Stage, recorded: str) -> None:
    folder = stage.run("r", state=recorded, note="as another worker left it", done=3)
    if recorded in ("queued", "loading", "running", "judging"):
        stage.die(folder)
    before = read_summary(folder).state
    with FileLock(folder / SUPERVISOR_FILE) as supervisor:
        supervisor.acquire(worker_text(None))
        assert (read_summary(folder).state, read_summary(folder).note) == ("planned", "")
        supervisor.rename(worker_text(1))  # a process that has not touched the run yet
        assert read_summary(folder).state == "planned"
        stage.note(folder, "loading")
        stage.work_on(folder)
        assert read_summary(folder).state == "loading"
        supervisor.rename(worker_text(read_summary(folder).worker))
        stage.note(folder, "failed", "it does not fit.")
        stage.die(folder)
        assert read_summary(folder).state == "failed", "as this worker recorded"
    stage.note(folder, recorded)
    assert read_summary(folder).state == before


def test_a_worker_that_vanishes_under_its_supervisor_is_gone(stage: Stage) -> None:
    folder = stage.run("r", state="running", done=3)
    with FileLock(folder / SUPERVISOR_FILE) as supervisor:
        supervisor.acquire(worker_text(read_summary(folder).worker))
        assert read_summary(folder).state == "running"
        stage.die(folder)
        assert read_summary(folder).state == "interrupted"


def test_a_finished_run_of_a_supervisor_is_done(stage: Stage) -> None:
    folder = stage.run("r")
    with FileLock(folder / SUPERVISOR_FILE) as supervisor:
        supervisor.acquire(worker_text(None))
        assert read_summary(folder).state == "done"
