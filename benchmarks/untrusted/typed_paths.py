"""Paths typed by users: any text at all, most of which names no file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from benchmarks.errors import SpecError
from benchmarks.number_ranges import shortened


def typed_path(text: str | Path, base: Path = Path()) -> Path:
    """Return ``text`` as an absolute path, with ``~`` and ``~name`` expanded, relative to ``base``.

    Raises SpecError for an unknown home folder, and for text that can be no path.
    """
    try:
        path = Path(base, Path(text).expanduser()).absolute()
    except RuntimeError as error:
        raise SpecError(f"{str(text)!r} names a home folder that does not exist; write the full path.") from error
    try:
        os.lstat(path)
    except ValueError as error:
        raise SpecError(f"{shortened(str(text))} contains characters that no path can have; write another.") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise SpecError(f"{shortened(str(text))} is too long for a path; write another.") from error
    return path


def path_exists(text: str | Path, base: Path = Path()) -> bool:
    """Return whether the file or folder exists, relative to ``base``; False for text that cannot be a path."""
    try:
        return Path(base, Path(text).expanduser()).exists()
    except (OSError, RuntimeError, ValueError):
        return False


def folder_exists(text: str | Path, base: Path = Path()) -> bool:
    """Return whether the folder exists, relative to ``base``; False for text that cannot be a path."""
    return path_exists(text, base) and Path(base, Path(text).expanduser()).is_dir()
