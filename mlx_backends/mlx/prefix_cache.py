"""Prefixes: the key-value caches of prompts' beginnings, kept to be copied by the prompts that begin so too."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mlx_backends.mlx.preprocess import common

KEPT_BYTES = 2**29
"""How much memory is given to kept prefixes; the newest is kept whatever its size."""

WORTH_TOKENS = 8
"""A prefix is worth a stop on the way, and a copy, if that saves the prompts which are known to share it so many tokens."""

Cache = list[Any]
"""A model's cache of one prompt: an entry a layer."""


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    content: Any
    cache: Cache
    trimmable: bool
    size: int


class PrefixCache:
    """Kept prefixes by their content (:class:`mlx_backends.mlx.preprocess.PreparedInputs`); the one that was longest unused
    goes first."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._limit = kept_bytes
        self._kept: list[_Kept] = []

    def keep(self, content: Any, cache: Cache, *, likely: bool = True) -> None:
        """Keep ``cache``, which holds exactly ``content`` and is not to be written to by anyone any more.

        One that is not ``likely`` to be of use is the first to go.
        """
        known = [kept for kept in self._kept if len(kept.content) == len(content) == common(kept.content, content)]
        self._kept = [kept for kept in self._kept if kept not in known]
        trimmable = all(entry.is_trimmable() for entry in cache)
        kept = _Kept(content, cache, trimmable, sum(entry.nbytes for entry in cache))
        self._kept.insert(len(self._kept) if likely else 0, kept)
        while len(self._kept) > 1 and sum(kept.size for kept in self._kept) > self._limit:
            self._kept.pop(0)

    def longest(self, content: Any) -> tuple[int, Cache | None]:
        """The longest beginning of ``content`` that is kept: its length, and a copy of its cache.

        The last position is left out, because what follows a prompt is computed from it. A cache that cannot be trimmed is
        of use only as a whole.
        """
        best, length = None, 0
        for kept in self._kept:
            shared = min(common(kept.content, content), len(content) - 1)
            if shared > length and (kept.trimmable or shared == len(kept.content)):
                best, length = kept, shared
        if best is None:
            return 0, None
        self._kept = [kept for kept in self._kept if kept is not best] + [best]
        cache = copy.deepcopy(best.cache)
        if surplus := len(best.content) - length:
            for entry in cache:
                entry.trim(surplus)
        return length, cache

    def clear(self) -> None:
        """Forget everything."""
        self._kept = []


def whole_only(cache: Cache) -> str:
    """Why prefixes of a model with such an empty ``cache`` can be used again as a whole only; empty where in part too."""
    rigid = sorted({type(entry).__name__ for entry in cache if not entry.is_trimmable()})
    if rigid:
        return f"its cache cannot be cut back ({', '.join(rigid)})"
    windows = sorted({int(entry.max_size) for entry in cache if getattr(entry, "max_size", None)})
    return f"its cache cannot be cut back beyond {windows[0]} tokens (a sliding window)" if windows else ""


def stops(content: Any, others: Iterable[Any], start: int) -> Sequence[int]:
    """Where on the way through ``content``, from ``start`` on, a copy is worth keeping for ``others``, in rising order."""
    shared = sorted(min(common(content, other), len(content) - 1) for other in others)
    found: list[int] = []
    last = start
    for number, length in enumerate(shared):
        if (length - last) * (len(shared) - number) >= WORTH_TOKENS:
            found.append(length)
            last = length
    return found
