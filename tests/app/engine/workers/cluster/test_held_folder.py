"""Folders of workers: gone when they end, and, after a kill, when the next worker starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from app.engine.workers.cluster.held_folder import HeldFolder, remove_leftovers

_KILLED = """
import os, signal, sys
from pathlib import Path
from app.engine.workers.cluster.held_folder import HeldFolder
folder = HeldFolder(Path(sys.argv[1]), "image-")
(folder.path / "image.png").write_bytes(b"private")
os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_folder_of_a_killed_process_is_removed_and_no_other(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False)
    (leftover,) = names(tmp_path)
    mine = HeldFolder(tmp_path, "image-")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "image-link").symlink_to("elsewhere")
    remove_leftovers(tmp_path, "image-*")
    assert names(tmp_path) == sorted(["elsewhere", "image-link", mine.path.name])
    assert leftover not in names(tmp_path)
    mine.remove()
    assert names(tmp_path) == ["elsewhere", "image-link"]


def test_folder_ends_with_its_owner_unless_it_is_kept(tmp_path: Path) -> None:
    folder, kept = HeldFolder(tmp_path, "a-"), HeldFolder(tmp_path, "b-")
    (kept.path / "file").write_text("content")
    kept.keep_as(tmp_path / "kept")
    del folder, kept
    assert names(tmp_path) == ["kept"]
    remove_leftovers(tmp_path, "*")
    assert names(tmp_path) == [], "nobody holds it any more"
