"""Names that are one file on some disks: macOS ignores capitals, and how a letter with an accent is encoded."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


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
