"""Decoys: names in a received folder that lead out of it, and the files outside that must stay as they are."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

import pytest

KINDS = ("link to a file", "link to a folder", "dangling link", "FIFO", "device", "hard link")
SECRET = b"ssh-ed25519 AAAA mine\n"


class Outside:
    """A folder that no command may change, beside what commands are given."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        (path / "authorized_keys").write_bytes(SECRET)
        (path / "folder").mkdir()
        (path / "folder" / "file").write_bytes(SECRET)

    def put(self, place: Path, kind: str) -> None:
        """Have ``place``, which may be taken, be a decoy of a kind. A link leads to what was there, so that all fits."""
        target = self.path / f"was-{place.name}"
        if place.is_symlink() or place.is_file():
            os.rename(place, target)
        elif place.is_dir():
            os.rename(place, self.path / "folder" / "was")
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.write_bytes(SECRET)
        match kind:
            case "link to a file":
                place.symlink_to(os.path.relpath(target, place.parent))
            case "link to a folder":
                moved = self.path / "folder" / "was"
                place.symlink_to(moved if moved.exists() else self.path / "folder")
            case "dangling link":
                place.symlink_to(self.path / "made")
            case "FIFO":
                os.mkfifo(place)
            case "hard link":
                os.link(target, place)
            case "device":
                try:
                    os.mknod(place, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero, which never ends
                except PermissionError:
                    pytest.skip("making a device needs root")

    def state(self) -> dict[str, tuple[int, int, str]]:
        """Every file by its name: mode, time of change and digest."""
        entries = {}
        for path in sorted(self.path.rglob("*")):
            seen = path.lstat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            entries[str(path.relative_to(self.path))] = (seen.st_mode, seen.st_mtime_ns, digest)
        return entries


def copy_home(template: Path, home: Path) -> Path:
    """A home of one's own with what ``template`` holds."""
    shutil.copytree(template, home, symlinks=True)
    return home
