"""Temporary files and folders: gone when they end, and, after a kill, when the next process needs one there."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.untrusted.own_files import OwnFolder, remove_whole, sweep

_FOLDER = """
import os, sys
from pathlib import Path
from benchmarks.untrusted.own_files import OwnFolder
folder = OwnFolder(Path(sys.argv[1]))
(folder.path / "media").mkdir()
(folder.path / "media" / "image.png").write_bytes(b"private")
os.chmod(folder.path / "media", 0o500)
os.chmod(folder.path, 0o500)
"""
_FILE = """
import sys
from pathlib import Path
from benchmarks.untrusted.safe_files import replacing
part = replacing(Path(sys.argv[1]), "table.csv")
part.__enter__().write(b"half")
"""
_WAIT = "\nprint('ready', flush=True)\nsys.stdin.read()\n"
_REPLACE = """
import sys
from pathlib import Path
from benchmarks.untrusted.safe_files import replace_file
replace_file(Path(sys.argv[1]), "other.csv", b"whole")
"""


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@contextmanager
def held(code: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has begun to write in ``folder``, until it is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", code + _WAIT, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("code", [_FOLDER, _FILE], ids=["folder", "file"])
def test_leftover_of_a_killed_process_is_removed_and_no_other(code: str, tmp_path: Path) -> None:
    with held(code, tmp_path):
        (leftover,) = names(tmp_path)
        sweep(tmp_path)
        assert names(tmp_path) == [leftover], "its process lives"
    assert names(tmp_path) == [leftover]
    with OwnFolder(tmp_path) as mine:
        assert names(tmp_path) == [mine.path.name]
        sweep(tmp_path)
        assert names(tmp_path) == [mine.path.name]
    assert names(tmp_path) == []


def test_writing_a_file_removes_what_a_killed_process_left_in_its_folder(tmp_path: Path) -> None:
    for code in (_FILE, _FOLDER, _FILE):
        with held(code, tmp_path):
            pass
        assert len(names(tmp_path)) == 1, "each has removed the leftover of the one before"
    subprocess.run([sys.executable, "-c", _REPLACE, str(tmp_path)], check=True)
    assert names(tmp_path) == ["other.csv"]


def test_nothing_is_removed_that_is_not_provably_ours(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    (outside / "file").write_text("the user's")
    folder.mkdir()
    (folder / ".rashomon-00000001").symlink_to(outside)
    (folder / ".rashomon-00000002").symlink_to(outside / "file")
    os.mkfifo(folder / ".rashomon-00000003")
    for name in (
        ".rashomon-notes",
        ".rashomon-0000000g",
        ".rashomon-000000001",
        "x.rashomon-00000001",
        ".x.12345678.part",
    ):
        (folder / name).mkdir()
    kept = names(folder)
    left = folder / ".rashomon-00000004"
    left.mkdir()
    (left / "link").symlink_to(outside)
    sweep(folder)
    assert names(folder) == kept
    assert (outside / "file").read_text() == "the user's"


def test_a_folder_of_another_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".rashomon-00000000").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    sweep(tmp_path)
    assert names(tmp_path) == [".rashomon-00000000"]


def test_on_a_disk_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    (tmp_path / ".rashomon-00000000").mkdir()
    monkeypatch.setattr(fcntl, "flock", refuse)
    with OwnFolder(tmp_path) as folder:
        assert len(names(tmp_path)) == 2
        assert folder.path.is_dir()
    assert names(tmp_path) == [".rashomon-00000000"]


def test_folder_ends_with_its_owner_unless_it_is_kept(tmp_path: Path) -> None:
    folder, kept = OwnFolder(tmp_path), OwnFolder(tmp_path)
    (kept.path / "file").write_text("content")
    kept.keep_as(tmp_path / "kept")
    del folder, kept
    assert names(tmp_path) == ["kept"]
    sweep(tmp_path)
    assert names(tmp_path) == ["kept"]


def test_a_folder_that_is_removed_never_looks_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.sqlite").write_bytes(b"rows")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            remove_whole(tmp_path / "run")
    (left,) = names(tmp_path)
    assert left.startswith(".rashomon-")
    sweep(tmp_path)
    assert names(tmp_path) == []


def test_many_processes_sweep_and_create_at_once(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from benchmarks.untrusted.own_files import OwnFolder, remove_whole, sweep
for _ in range(300):
    with OwnFolder(Path(sys.argv[1])) as folder:
        (folder.path / "file").write_text("whole")
        sweep(folder.path.parent)
        assert (folder.path / "file").read_text() == "whole"
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert names(tmp_path) == []
