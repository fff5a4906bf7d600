"""Folders of models that commands write: complete, or absent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.commands.new_folder import new_folder


def test_the_next_command_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    for name in (f".m-{ended.pid}.writing", f".m-{os.getppid()}.writing", f".m-{ended.pid}", f".n-{ended.pid}.writing"):
        (tmp_path / name).mkdir()
    with new_folder(tmp_path / "m") as folder:
        (folder / "config.json").write_text("{}")
    kept = {f".m-{os.getppid()}.writing", f".m-{ended.pid}", f".n-{ended.pid}.writing"}
    assert {path.name for path in tmp_path.iterdir()} == {"m", *kept}
    assert os.listdir(tmp_path / "m") == ["config.json"]


def test_a_folder_that_was_not_finished_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "m"):
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []
