"""Names that are one file on some disks: macOS ignores capitals, and how a letter with an accent is encoded."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath, PureWindowsPath


def name_key(name: str) -> str:
    """Return what two names have in common that a disk may not tell apart; the keys of others differ."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def repeated_name(names: Iterable[str]) -> str | None:
    """Return the first name that may be the same file as an earlier one; None if there is none."""
    seen: set[str] = set()
    for name in names:
        if (key := name_key(name)) in seen:
            return name
        seen.add(key)
    return None


def twin(name: str, names: Iterable[str]) -> str | None:
    """Return the one of ``names`` that a disk may not tell from ``name``; None if there is none, or ``name`` is one of them."""
    names = list(names)
    if name in names:
        return None
    return next((other for other in names if name_key(other) == name_key(name)), None)


def distinct_names(names: Iterable[str], numbered: str = "{} ({})", longest: int | None = None) -> list[str]:
    """Return ``names`` with a number after each that may be the same file as another, such as ``a``, ``A (2)``.

    ``numbered`` is the form of such a name, of which at most ``longest`` characters come before the number.
    """
    taken: set[str] = set()
    distinct: list[str] = []
    for name in names:
        number, candidate = 1, name
        while name_key(candidate) in taken:
            number += 1
            candidate = numbered.format(name[:longest], number)
        taken.add(name_key(candidate))
        distinct.append(candidate)
    return distinct


LONGEST_NAME, LONGEST_PATH = 200, 700
"""Bytes of a name in a folder, and of a whole relative path, that every disk and its temporary names have room for."""


def unsafe_path(path: str) -> str | None:
    """Return why a relative path from outside can be no file in a folder, as the end of "a file ..."; None if it can."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or PureWindowsPath(path).drive:
        return "outside the folder"
    if not path.isprintable():
        return "with control characters in its name"
    if len(path.encode()) > LONGEST_PATH or any(len(part.encode()) > LONGEST_NAME for part in parts):
        return "whose name is too long"
    return None


def colliding_path(paths: Iterable[str]) -> str | None:
    """Return a path that may be the same file as another one, or is a folder of another one; None if there is none."""
    keys: dict[str, str] = {}
    for path in paths:
        if keys.setdefault(name_key(path), path) is not path:
            return path
    folders = (folder for path in keys for folder in map(str, PurePosixPath(path).parents))
    return next((keys[folder] for folder in folders if folder in keys), None)
