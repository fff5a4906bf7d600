"""Search for the file that a mistyped name most likely means."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath, PureWindowsPath

from benchmarks.untrusted.finder_files import is_finder_file

_ENTRIES = 5_000
"""The maximum number of entries that are read of a folder."""

_FOLDERS = 50
"""The maximum number of folders that are searched for a file of the same name."""

_GUESSES = 100
"""The maximum number of fuzzy comparisons, which are slow in large folders."""

_MIN_SIMILARITY = 0.8


class NearFiles:
    """The files in ``folder`` and its subfolders, matched against mistyped names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guesses = 0
        self._entries = cache(_entries)

    def nearest(self, written: str) -> str:
        """Return the file, relative to the folder, that ``written`` most likely means; empty if no file is similar.

        Similar names differ in case, in the direction of their slashes, in their folder or in a few letters.
        """
        parts = PurePosixPath(PureWindowsPath(written).as_posix()).parts
        parts = tuple(part for part in parts if part not in ("/", ".", "..") and not part.endswith(":"))
        if not parts:
            return ""
        return self._along(parts) or self._elsewhere(parts[-1])

    def relative(self, path: str) -> str:
        """Return ``path`` relative to the folder if it is inside it, else unchanged."""
        return path.removeprefix(f"{self._folder}/")

    def _along(self, parts: Sequence[str]) -> str:
        """Return the file found by following the path, each part by its most similar name."""
        place = self._folder
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            files, folders = self._entries(place)
            if (match := self._match(part, files if last else folders)) is None:
                return ""
            place = place / match
        return place.relative_to(self._folder).as_posix()

    def _elsewhere(self, name: str) -> str:
        """Return a file of that name, ignoring case, in the folder or its subfolders."""
        places = [self._folder]
        for place in places:
            files, folders = self._entries(place)
            if (match := _same(name, files)) is not None:
                return (place / match).relative_to(self._folder).as_posix()
            places += [place / folder for folder in folders[: max(0, _FOLDERS - len(places))]]
        return ""

    def _match(self, name: str, names: Sequence[str]) -> str | None:
        if (same_name := _same(name, names)) is not None:
            return same_name
        if self._guesses >= _GUESSES:
            return None
        self._guesses += 1
        # Names that differ in a number are two files of a series, not a typing error.
        plain_names = {_plain(other): other for other in names if _numbers(other) == _numbers(name)}
        close = get_close_matches(_plain(name), plain_names, n=1, cutoff=_MIN_SIMILARITY)
        return plain_names[close[0]] if close else None


def _same(name: str, names: Sequence[str]) -> str | None:
    return name if name in names else next((other for other in names if _plain(other) == _plain(name)), None)


@lru_cache(2 * _ENTRIES)
def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _numbers(name: str) -> list[str]:
    return [number.lstrip("0") for number in re.findall(r"\d+", name)]


def _entries(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names of a folder's files and subfolders, without links to folders; none if it cannot be read."""
    files, folders = [], []
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(_ENTRIES), entries, strict=False):
                if is_finder_file(entry.name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file():
                    files.append(entry.name)
    except OSError:
        return [], []
    return sorted(files), sorted(folders)
