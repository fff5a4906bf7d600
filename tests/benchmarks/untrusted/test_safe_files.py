"""Files of received folders: links, FIFOs, devices and hard links are refused, and nothing outside changes."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.untrusted import safe_files
from benchmarks.untrusted.safe_files import UnsafeFileError

SECRET = b"ssh-ed25519 AAAA mine\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(SECRET)
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def _device(place: Path) -> None:
    try:
        os.mknod(place, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("making a device needs root")


def _socket(place: Path) -> None:
    here = Path.cwd()
    os.chdir(place.parent)  # a socket's path is at most some hundred bytes long
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(place.name)
    finally:
        os.chdir(here)


KINDS: dict[str, Callable[[Path], object]] = {
    "link": lambda place: place.symlink_to("../outside/secret"),
    "link to a folder": lambda place: place.symlink_to("../outside"),
    "dangling link": lambda place: place.symlink_to("../outside/made"),
    "FIFO": os.mkfifo,
    "device": _device,
    "socket": _socket,
    "folder": Path.mkdir,
}
WAYS: dict[str, Callable[[Path], object]] = {
    "read": lambda folder: safe_files.open_read(folder, "file"),
    "bytes": lambda folder: safe_files.read_bytes(folder, "file", limit=100),
    "write": lambda folder: safe_files.open_write(folder, "file"),
    "append": lambda folder: safe_files.open_write(folder, "file", append=True),
    "check": lambda folder: safe_files.check_file(folder, "file", write=False),
    "lock": lambda folder: safe_files.open_descriptor(folder, "file", os.O_RDWR | os.O_CREAT),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_non_regular_file_is_refused_by_name(folder: Path, kind: str, way: str) -> None:
    KINDS[kind](folder / "file")
    with pytest.raises(UnsafeFileError, match="run/file is a"):
        WAYS[way](folder)
    assert sorted(p.name for p in (folder.parent / "outside").iterdir()) == ["secret"]
    assert (folder.parent / "outside/secret").read_bytes() == SECRET


def test_a_hard_link_is_read_but_never_written(folder: Path) -> None:
    os.link(folder.parent / "outside/secret", folder / "file")
    assert safe_files.read_bytes(folder, "file", limit=100) == SECRET
    for way in ("write", "append", "lock"):
        with pytest.raises(UnsafeFileError, match="a hard link"):
            WAYS[way](folder)
    with pytest.raises(UnsafeFileError):
        safe_files.check_file(folder, "file", write=True)
    assert (folder.parent / "outside/secret").read_bytes() == SECRET


@pytest.mark.parametrize("kind", ["link", "dangling link", "FIFO", "hard link"])
def test_replacing_a_link_leaves_its_target_alone(folder: Path, kind: str) -> None:
    if kind == "hard link":
        os.link(folder.parent / "outside/secret", folder / "file")
    else:
        KINDS[kind](folder / "file")
    safe_files.replace_file(folder, "file", b"new")
    assert (folder / "file").read_bytes() == b"new"
    assert not (folder / "file").is_symlink()
    assert [p.name for p in folder.iterdir()] == ["file"]
    assert (folder.parent / "outside/secret").read_bytes() == SECRET
    assert sorted(p.name for p in (folder.parent / "outside").iterdir()) == ["secret"]


def test_linked_parent_is_refused_except_in_the_users_own_path(folder: Path) -> None:
    (folder / "media").symlink_to("../outside")
    for act in (
        lambda: safe_files.open_read(folder, "media/secret"),
        lambda: safe_files.replace_file(folder, "media/new", b""),
        lambda: safe_files.remove_file(folder, "media/secret"),
        lambda: safe_files.make_folder(folder, "media"),
    ):
        with pytest.raises(UnsafeFileError, match="media is a link where a folder belongs"):
            act()
    assert sorted(p.name for p in (folder.parent / "outside").iterdir()) == ["secret"]
    (folder.parent / "mine").symlink_to("run")
    safe_files.replace_file(folder.parent / "mine", "file", b"new")
    assert (folder / "file").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["", "..", "../outside/secret", "/etc/passwd", "a/../../outside/secret", "a\0b"])
def test_names_that_lead_elsewhere_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(UnsafeFileError):
        safe_files.open_read(folder, name)
    with pytest.raises(UnsafeFileError):
        safe_files.replace_file(folder, name, b"")


def test_new_files_honour_the_umask_and_large_files_are_not_read(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        safe_files.replace_file(safe_files.make_folder(folder, "a/b"), "file", b"12345")
        with safe_files.open_write(folder, "log", append=True) as log:
            log.write(b"x")
    finally:
        os.umask(before)
    for name, mode in {"a": 0o700, "a/b": 0o700, "a/b/file": 0o600, "log": 0o600}.items():
        assert (folder / name).stat().st_mode & 0o777 == mode
    assert safe_files.read_bytes(folder, "a/b/file", limit=5) == b"12345"
    with pytest.raises(UnsafeFileError):
        safe_files.read_bytes(folder, "a/b/file", limit=4)
    with pytest.raises(FileNotFoundError):
        safe_files.open_read(folder, "nothing")
    with pytest.raises(FileExistsError):
        safe_files.open_write(folder, "log", new=True)


def test_all_files_of_a_database_are_checked(folder: Path) -> None:
    assert not safe_files.check_database(folder, "run.sqlite", write=True)
    (folder / "run.sqlite").touch()
    assert safe_files.check_database(folder, "run.sqlite", write=True)
    for suffix in ("-wal", "-shm", "-journal"):
        (folder / f"run.sqlite{suffix}").symlink_to("../outside/made")
        with pytest.raises(UnsafeFileError, match=suffix):
            safe_files.check_database(folder, "run.sqlite", write=False)
        (folder / f"run.sqlite{suffix}").unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file to another user needs root")
def test_a_file_of_another_user_is_refused(folder: Path) -> None:
    (folder / "file").write_bytes(b"theirs")
    os.chown(folder / "file", 4321, -1)
    for way in WAYS:
        with pytest.raises(UnsafeFileError, match="another user"):
            WAYS[way](folder)
    os.chown(folder, 4321, -1)  # a folder of somebody else's, as root in a container finds it
    assert safe_files.read_bytes(folder, "file", limit=100) == b"theirs"
