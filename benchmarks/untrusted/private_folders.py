"""Folders of this user alone: the cache and the state, whatever made them first, and whatever the umask is."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_OTHERS = 0o077


def cache_folder() -> Path:
    """Return the folder of Rashomon in the user's cache, which may not exist; :func:`make_private` creates it."""
    from platformdirs import user_cache_path

    return user_cache_path("rashomon")


def make_private(folder: Path) -> Path:
    """Create a folder unless it exists, take the permissions of others off it, and return it. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = os.stat(folder)
    if status.st_uid == os.geteuid() and status.st_mode & _OTHERS:
        with suppress(OSError):  # a disk without permissions
            os.chmod(folder, 0o700)
    return folder
