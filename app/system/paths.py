"""Paths typed by users."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.errors import SpecError

ASSETS = Path(__file__).resolve().parents[2] / "assets"
"""The folder of files that ship with the project."""


def typed_path(text: str | Path, base: Path = Path()) -> Path:
    """Return ``text`` as an absolute path, with ``~`` and ``~name`` expanded, relative to ``base``.

    Raises SpecError for an unknown home folder.
    """
    try:
        return Path(base, Path(text).expanduser()).absolute()
    except RuntimeError as error:
        raise SpecError(f"{str(text)!r} names a home folder that does not exist; write the full path.") from error


def path_exists(text: str | Path) -> bool:
    """Return whether the file or folder exists; False for text that cannot be a path."""
    try:
        return Path(text).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


def free_space(folder: Path) -> int:
    """Return the free bytes on the disk of ``folder``, which need not exist yet. Raises OSError."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    return shutil.disk_usage(existing).free
