"""Deleted runs: moved aside as a whole, brought back, removed for good, and never lost by a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.store.file_locks import FileLock
from app.store.run_trash import FOLDER, Trash
from app.store.workspace import Workspace
from benchmarks.errors import StoreError
from tests.support.trust import tree


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Two runs, so far as the trash can tell."""
    result = Workspace(tmp_path / "workspace")
    for name in ("one", "two"):
        run(result, name)
    return result


def run(workspace: Workspace, name: str, text: str = "answers") -> Path:
    folder = workspace.runs_folder / name
    folder.mkdir(parents=True)
    (folder / "run.sqlite").write_text(text)
    return folder


def left_in(workspace: Workspace) -> list[str]:
    return sorted(path.name for path in workspace.runs_folder.glob(f"{FOLDER}/*/*") if path.is_dir())


def test_a_deleted_run_comes_back_whole(workspace: Workspace) -> None:
    trash, folder = Trash(workspace), workspace.runs_folder / "one"
    trash.delete(folder)
    assert workspace.run_names() == ["two"]
    assert trash.names == ["one"]
    assert trash.restore() == folder
    assert (folder / "run.sqlite").read_text() == "answers"
    assert trash.names == []
    with pytest.raises(StoreError):
        trash.restore()


def test_what_is_not_a_run_of_its_own_is_not_deleted(workspace: Workspace, tmp_path: Path) -> None:
    folder, trash = workspace.runs_folder / "one", Trash(workspace)
    with FileLock(folder / "lock") as lock:
        assert lock.acquire("process 17")
        with pytest.raises(StoreError, match="process 17 is using one"):
            trash.delete(folder)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    trash.delete(folder)
    link = workspace.runs_folder / "link"
    link.symlink_to(workspace.runs_folder / "two")
    for wrong in (link, tmp_path / "elsewhere", workspace.runs_folder / "nothing"):
        with pytest.raises(StoreError):
            trash.delete(wrong)
    trash.empty()
    assert (tmp_path / "elsewhere" / "kept").exists(), "links are not followed"
    assert workspace.run_names() == ["link", "two"]
    assert not (workspace.runs_folder / FOLDER).exists()


def test_namesakes_are_kept_apart_and_none_is_written_over(workspace: Workspace) -> None:
    trash = Trash(workspace)
    for text in ("first", "second"):
        trash.delete(workspace.runs_folder / "one")
        run(workspace, "one", text)
    with pytest.raises(StoreError):
        trash.restore()
    trash.delete(workspace.runs_folder / "one")
    contents = []
    for number in range(3):
        contents.append((trash.restore() / "run.sqlite").read_text())
        (workspace.runs_folder / "one").rename(workspace.runs_folder / f"was-{number}")
    assert contents == ["second", "first", "answers"]


def test_two_at_once_leave_each_other_alone(workspace: Workspace) -> None:
    first, second = Trash(workspace), Trash(workspace)
    first.delete(workspace.runs_folder / "one")
    assert second.take_over() == []
    second.delete(workspace.runs_folder / "two")
    second.empty()
    assert left_in(workspace) == ["0000-one"]
    first.restore()
    first.empty()
    assert workspace.run_names() == ["one"]


DELETE = """
import sys, time
from pathlib import Path
from app.store.run_trash import Trash
from app.store.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]))
trash = Trash(workspace)
for name in workspace.run_names():
    trash.delete(workspace.runs_folder / name)
    print(name, flush=True)
{then}
"""


def test_what_a_killed_process_deleted_is_taken_over_and_comes_back(workspace: Workspace) -> None:
    command = [sys.executable, "-c", DELETE.format(then="time.sleep(60)"), str(workspace.path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ})
    assert process.stdout is not None
    assert [process.stdout.readline().strip() for _ in range(2)] == [b"one", b"two"]
    alive = Trash(workspace)
    assert alive.take_over() == [], "its owner lives"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert alive.take_over() == ["one", "two"]
    alive.restore()
    alive.restore()
    assert workspace.run_names() == ["one", "two"]
    alive.empty()
    assert not (workspace.runs_folder / FOLDER).exists()


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_every_run_whole_somewhere(workspace: Workspace) -> None:
    names = ["one", "two", *(f"run-{number:02}" for number in range(40))]
    for name in names[2:]:
        run(workspace, name)
    for attempt in range(60):
        command = [sys.executable, "-c", DELETE.format(then="pass"), str(workspace.path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ})
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(attempt / 10_000)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        trash = Trash(workspace)
        trash.take_over()
        assert sorted([*workspace.run_names(), *trash.names]) == sorted(names)
        while trash.names:
            assert (trash.restore() / "run.sqlite").read_text() == "answers"
        trash.empty()
    assert workspace.run_names() == sorted(names)


def test_a_run_half_removed_does_not_come_back(workspace: Workspace) -> None:
    killed = Trash(workspace)
    killed.delete(workspace.runs_folder / "one")
    assert killed._lock is not None
    killed._lock.release()
    (left,) = (workspace.runs_folder / FOLDER).iterdir()
    (left / "0000-one").rename(left / ".rashomon-01230123")
    trash = Trash(workspace)
    assert trash.take_over() == []
    assert not left.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(workspace: Workspace) -> None:
    workspace.runs_folder.chmod(0o555)
    try:
        with pytest.raises(StoreError):
            Trash(workspace).delete(workspace.runs_folder / "one")
    finally:
        workspace.runs_folder.chmod(0o755)


@pytest.mark.parametrize("planted", ["the trash", "a folder in it", "a run in it", "a lock in it"])
def test_nothing_outside_is_taken_over_or_removed_through_a_planted_link(
    workspace: Workspace, tmp_path: Path, planted: str
) -> None:
    theirs = tmp_path / "outside"
    (theirs / "folder").mkdir(parents=True)
    (theirs / "folder" / "0000-mine").write_text("kept")
    (theirs / "0000-kept").write_text("kept")
    trash = workspace.runs_folder / FOLDER
    place = {
        "the trash": trash,
        "a folder in it": trash / "left",
        "a run in it": trash / "left" / "0000-run",
        "a lock in it": trash / "left" / ".lock",
    }[planted]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(theirs / "0000-kept" if planted == "a lock in it" else theirs, target_is_directory=True)
    before = tree(theirs)
    mine = Trash(workspace)
    mine.take_over()
    try:
        mine.delete(workspace.runs_folder / "one")
    except StoreError:
        assert planted == "the trash"
        assert (workspace.runs_folder / "one" / "run.sqlite").is_file()
    mine.empty()
    assert tree(theirs) == before
