"""Folders of the user alone: others get no permission on them, whatever made them first."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from benchmarks.untrusted.private_folders import make_private
from tests.support.command import ROOT


@pytest.mark.parametrize("mode", [None, 0o755, 0o777, 0o700])
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_a_private_folder_is_closed_to_others(tmp_path: Path, mode: int | None, umask: int) -> None:
    folder = tmp_path / "cache" / "rashomon"
    before = os.umask(umask)
    try:
        if mode is not None:
            folder.mkdir(parents=True)
            folder.chmod(mode)
        assert make_private(folder) == folder
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_cache_and_state_are_made_in_one_place() -> None:
    files = [
        path for package in ("app", "benchmarks", "judges", "mlx_backends") for path in (ROOT / package).rglob("*.py")
    ]
    users = {path.name for path in files if "user_cache" in path.read_text("utf-8")}
    assert users == {"private_folders.py"}
