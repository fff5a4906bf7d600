"""Locks on disks that have none."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from app.store.locks import FileLock
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
