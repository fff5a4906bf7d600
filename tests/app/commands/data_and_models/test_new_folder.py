"""Folders of models that commands write: complete, or absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.commands.data_and_models.new_folder import new_folder


def test_the_next_command_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    (tmp_path / ".rashomon-00000000" / "weights").mkdir(parents=True)
    with new_folder(tmp_path / "m") as folder:
        (folder / "config.json").write_text("{}")
    assert os.listdir(tmp_path) == ["m"]
    assert os.listdir(tmp_path / "m") == ["config.json"]
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o777 & ~_umask()


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_a_folder_that_was_not_finished_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "m"):
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []
