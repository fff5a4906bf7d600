"""Paths of the project and of the disk."""

from __future__ import annotations

import shutil
from pathlib import Path

ASSETS = Path(__file__).resolve().parents[2] / "assets"
"""The folder of files that ship with the project."""


def free_space(folder: Path) -> int:
    """Return the free bytes on the disk of ``folder``, which need not exist yet. Raises OSError."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    return shutil.disk_usage(existing).free
