"""Paths as people type them."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.errors import SpecError

ASSETS = Path(__file__).resolve().parents[2] / "assets"
"""What ships with the project."""


def typed_path(text: str | Path, base: Path = Path()) -> Path:
    """``text`` as an absolute path: ``~`` and ``~name`` resolved, relative to ``base``. Raises SpecError for no such home."""
    try:
        return Path(base, Path(text).expanduser()).absolute()
    except RuntimeError as error:
        raise SpecError(f"{str(text)!r} names a home folder that does not exist; write the whole path.") from error


def exists(text: str | Path) -> bool:
    """Whether there is such a file or folder; False for what cannot be a path at all."""
    try:
        return Path(text).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


def free_space(folder: Path) -> int:
    """Bytes free on the disk that ``folder`` is on, or will be. Raises OSError."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free
