"""Runs that are looked at again and again: one run's changes are seen, and nothing else is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.engine.run_control import pause, stop_run, unpause
from app.store.file_locks import FileLock
from app.store.run_store import RunStore
from app.store.summary_cache import Summaries
from app.store.workspace import Workspace
from benchmarks.errors import StoreError
from tests.support.runs import instances, make_run, read_all, says


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    two_runs = Workspace(tmp_path / "workspace")
    for name in ("one", "two"):
        make_run(two_runs, name, instances(2), says("12"))
    return two_runs


def settle(folder: Path) -> None:
    """Backdate the last change of the database."""
    for path in folder.glob("run.sqlite*"):
        os.utime(path, (1, 1))


def test_summaries_follow_every_change_and_read_only_what_changed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    real = RunStore.read.__func__  # type: ignore[attr-defined]

    def counted(cls: type[RunStore], folder: Path) -> RunStore:
        read.append(folder.name)
        store: RunStore = real(cls, folder)
        return store

    monkeypatch.setattr(RunStore, "read", classmethod(counted))
    for name in ("one", "two"):
        settle(workspace.runs_folder / name)
    summaries = Summaries(workspace)
    first = read_all(summaries)
    assert first == workspace.summaries()
    read.clear()
    assert read_all(summaries) == first
    assert read == []
    folder = workspace.runs_folder / "two"
    with RunStore.open(folder) as store:
        store.repeat(["aligned"])
        assert read_all(summaries)[1].done == 10, "while it is still in the log of the database"
        store.set_meta("state", {"state": "running"})
    assert read_all(summaries)[1].state == "interrupted"
    with FileLock(folder / "lock") as lock:
        assert lock.acquire("process 1")
        assert read_all(summaries)[1].state == "running"
        pause(folder)
        assert read_all(summaries)[1].state == "paused"
        unpause(folder)
    (folder / "run.sqlite").write_bytes(b"no database")
    assert read_all(summaries)[0].state == "unreadable"
    assert set(read) == {"two"}


def test_where_nobody_works_there_is_nothing_to_pause_or_stop(workspace: Workspace) -> None:
    folder = workspace.runs_folder / "one"
    for what in (pause, stop_run):
        with pytest.raises(StoreError, match="one is not running"):
            what(folder)
    assert not unpause(folder)
