"""Locks that processes of one holder share, and disks that have no locks."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from pathlib import Path

import pytest

from app.store.file_locks import FileLock
from benchmarks.errors import StoreError


@pytest.mark.parametrize("code", [errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS])
def test_a_disk_without_locks_is_refused_in_a_sentence(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(StoreError, match="no file locks"):
        FileLock(tmp_path / "lock").acquire("me")
    assert FileLock(tmp_path / "lock").holder() is None
    assert len(os.listdir("/dev/fd")) == before


def test_processes_of_one_holder_share_a_lock_until_the_last_has_ended(tmp_path: Path) -> None:
    first, second, other, alone = (FileLock(tmp_path / "lock") for _ in range(4))
    assert first.acquire_shared("run one")
    assert second.acquire_shared("run one")
    assert not other.acquire_shared("run two")
    assert not alone.acquire("run three", patience=0)
    first.release()
    assert FileLock(tmp_path / "lock").holder() == "run one"
    assert not other.acquire_shared("run two")
    assert not alone.acquire("run three", patience=0)
    second.release()
    assert FileLock(tmp_path / "lock").holder() is None
    assert other.acquire_shared("run two")
    other.release()
    assert alone.acquire("run three", patience=0)
    assert not first.acquire_shared("run one")
    assert FileLock(tmp_path / "lock").holder() == "run three"


def test_a_process_that_is_stopped_while_it_looks_takes_no_lock_away(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.path.touch()
    look = os.open(lock.path, os.O_RDONLY)  # as FileLock.holder, in a process that gets no processor for a second
    fcntl.flock(look, fcntl.LOCK_SH)
    timer = threading.Timer(1.0, os.close, (look,))
    timer.start()
    assert lock.acquire("me")
    timer.join()
    assert FileLock(lock.path).holder() == "me"
    start = time.monotonic()
    assert not FileLock(lock.path).acquire("you")
    assert time.monotonic() - start < 10
    lock.release()
    assert lock.acquire_shared("run one")
    assert not FileLock(lock.path).acquire("you")
