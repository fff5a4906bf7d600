"""Paths of the project and of the disk."""

from __future__ import annotations

import shutil
from pathlib import Path

ASSETS = Path(__file__).resolve().parents[2] / "assets"
"""The folder of files that ship with the project."""


def free_space(folder: Path) -> int:
    """Return the free bytes on the disk of ``folder``, which need not exist yet. Raises OSError."""
    return shutil.disk_usage(_existing(folder)).free


def disk_of(folder: Path) -> int:
    """Return the number of the disk of ``folder``, which need not exist yet. Raises OSError."""
    return _existing(folder).stat().st_dev


def _existing(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder
