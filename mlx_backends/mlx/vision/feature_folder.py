"""Folder of vision features in the user's cache: its limit, and what is dropped for new files.

Several processes share it. Each counts what it writes, and looks at the whole folder before it has written a twentieth of the
limit, so that the limit holds but for a twentieth for each process.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import StoreError
from benchmarks.untrusted.private_folders import cache_folder, make_private
from benchmarks.untrusted.safe_files import make_folder, remove_file

LIMIT = "RASHOMON_VISION_CACHE"
"""The environment variable with the most GB that the files may take; 0 stores and reads nothing."""

MIN_GB, MAX_GB, FREE_SHARE = 4, 50, 10
"""Without that variable, the limit is a tenth of the disk's free space, files of features included, between these bounds."""

MIN_FREE_BYTES = 10**9
"""Space on the disk that is left to others."""

FOLDER = "vision-features"
SUFFIX = ".features"
ENCODERS = "encoders.json"
"""The file with the digests of encoders."""

_CLOCK_S = 2
"""By how much the times of files may be behind the clock."""

_STEP = 20
_KEPT_OF_10 = 9
_GB = 10**9


@dataclass(frozen=True, slots=True, order=True)
class StoredFile:
    """A file of features: the time of its last use in seconds since 1970, its bytes, and its name."""

    used: float
    size: int
    name: str


class FeatureFolder:
    """The folder as one run uses it. Files that the run uses are not dropped for others of it, which could drop all of them."""

    def __init__(self, cache: Path | None = None, limit: int | None = None) -> None:
        """Take the user's cache and the limit in bytes, or else the default ones."""
        self.cache = cache or default_cache()
        self._limit = limit
        self._started = time.time() - _CLOCK_S
        self._room = 0
        self._is_full = False

    @property
    def is_on(self) -> bool:
        """Return False for a limit of zero."""
        return (_chosen_limit() if self._limit is None else self._limit) != 0

    def reserve(self, size: int) -> bool:
        """Return whether a file of ``size`` bytes may be written, after dropping the files that were used longest ago.

        It may not once the folder is full of what this run, and others at the same time, use. Raises OSError where the disk is
        nearly full.
        """
        make_folder(make_private(self.cache), FOLDER)
        if not self._is_full and self._room < size:
            self._room = self._make_room(size)
        if self._is_full or self._room < size:
            return False
        if shutil.disk_usage(self.cache).free < MIN_FREE_BYTES + size:
            raise OSError("the disk is nearly full")
        self._room -= size
        return True

    def _make_room(self, size: int) -> int:
        """Return how many bytes may be written before the next call; above the limit, files are dropped down to 90% of it."""
        files = stored_files(self.cache)
        used = sum(file.size for file in files)
        limit = limit_bytes(self.cache, used) if self._limit is None else self._limit
        if used + size > limit >= size:
            for file in sorted(files):
                if used + size <= limit * _KEPT_OF_10 // 10:
                    break
                if self._started <= file.used <= time.time() + _CLOCK_S:
                    continue
                with suppress(FileNotFoundError):  # another process dropped it
                    remove_file(self.cache, f"{FOLDER}/{file.name}")
                used -= file.size
            self._is_full = used + size > limit
        return min(limit - used, max(size, limit // _STEP))


def default_cache() -> Path:
    """Return the user's cache, in which the files have a folder of their own."""
    return cache_folder()


def limit_bytes(cache: Path, used: int) -> int:
    """Return the limit of the folder, of which ``used`` bytes are taken."""
    limit = _chosen_limit()
    if limit is not None:
        return limit
    while not cache.exists():
        cache = cache.parent
    share = (shutil.disk_usage(cache).free + used) // FREE_SHARE
    return min(max(share, MIN_GB * _GB), MAX_GB * _GB)


def _chosen_limit() -> int | None:
    """Return the limit that the environment sets in GB, 0 where it is no number; None where it sets none."""
    text = os.environ.get(LIMIT, "").strip()
    if not text:
        return None
    try:
        return max(0, int(float(text) * _GB))
    except (ValueError, OverflowError):
        return 0


def stored_files(cache: Path) -> list[StoredFile]:
    """Return the files of features. Raises OSError where the folder cannot be read."""
    files: list[StoredFile] = []
    if (cache / FOLDER).is_symlink():  # whose target is somebody else's
        return files
    with suppress(FileNotFoundError), os.scandir(cache / FOLDER) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    files.append(StoredFile(status.st_mtime, status.st_size, entry.name))
    return files


def forget_features() -> tuple[int, int]:
    """Remove all files of features; return how many there were, and their bytes. Raises StoreError."""
    cache = default_cache()
    try:
        files = stored_files(cache)
        for name in [*(file.name for file in files), ENCODERS]:
            with suppress(FileNotFoundError):
                remove_file(cache, f"{FOLDER}/{name}")
    except OSError as error:
        raise StoreError(f"cannot clear {cache / FOLDER}: {error.strerror}; remove the folder yourself.") from error
    return len(files), sum(file.size for file in files)
