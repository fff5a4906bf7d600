"""Cache of prompt prefixes: their key-value caches, copied for prompts that share the prefix."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx_vlm.models.cache import KVCache

from mlx_backends.core.reuse import shared_prefix_length

MIN_SAVED_TOKENS = 8
"""Fewest tokens that caching a prefix must save the known prompts that share it: reading up to it takes a pass of its own."""

Cache = list[Any]
"""A model's key-value cache of one prompt: an entry for each layer."""


@dataclass(slots=True, eq=False)
class _Prefix:
    content: Any
    cache: Cache
    trimmable: bool
    size: int
    likely: bool


class PrefixCache:
    """Least-recently-used cache of prefixes by their content (:class:`mlx_backends.mlx.preprocess.PreparedInputs`).

    ``cache_bytes`` is the memory for them; the newest is cached whatever its size.
    """

    def __init__(self, cache_bytes: int) -> None:
        self._limit = cache_bytes
        self._prefixes: list[_Prefix] = []

    def put(self, content: Any, cache: Cache, *, likely: bool = True) -> None:
        """Cache ``cache``, which holds exactly ``content`` and must not be written to any more.

        Those that are not ``likely`` to be of use are dropped first, but not the newest: what follows it may not be known yet.
        """
        duplicates = [
            prefix
            for prefix in self._prefixes
            if len(prefix.content) == len(content) == shared_prefix_length(prefix.content, content)
        ]
        self._prefixes = [prefix for prefix in self._prefixes if prefix not in duplicates]
        trimmable = all(entry.is_trimmable() for entry in cache)
        self._prefixes.append(_Prefix(content, cache, trimmable, sum(entry.nbytes for entry in cache), likely))
        while len(self._prefixes) > 1 and sum(prefix.size for prefix in self._prefixes) > self._limit:
            older = self._prefixes[:-1]
            self._prefixes.remove(next((prefix for prefix in older if not prefix.likely), older[0]))

    def longest(self, content: Any) -> tuple[int, Cache | None]:
        """Return the length of the longest cached prefix of ``content``, and a copy of its cache.

        The last position is left out, because what follows a prompt is computed from it. A cache that cannot be trimmed is
        used only as a whole.
        """
        best, length = None, 0
        for prefix in self._prefixes:
            shared = min(shared_prefix_length(prefix.content, content), len(content) - 1)
            if shared > length and (prefix.trimmable or shared == len(prefix.content)):
                best, length = prefix, shared
        if best is None:
            return 0, None
        best.likely = True
        self._prefixes = [prefix for prefix in self._prefixes if prefix is not best] + [best]
        cache = copy.deepcopy(best.cache)
        if surplus := len(best.content) - length:
            for entry in cache:
                entry.trim(surplus)
        return length, cache


def compact_copy(cache: Cache) -> Cache:
    """Return a copy of ``cache`` that takes no more memory than the positions that it holds."""
    copied = [entry.extract(0) if type(entry) is KVCache else copy.deepcopy(entry) for entry in cache]
    mx.eval([entry.state for entry in copied])  # else it would hold the buffer that it is a part of
    return copied


def trim_limitation(cache: Cache) -> str:
    """Return why a model with this empty ``cache`` can reuse prefixes only as a whole; empty where it can trim them."""
    rigid = sorted({type(entry).__name__ for entry in cache if not entry.is_trimmable()})
    if rigid:
        return f"its cache cannot be trimmed ({', '.join(rigid)})"
    windows = sorted({int(entry.max_size) for entry in cache if getattr(entry, "max_size", None)})
    return f"its cache cannot be trimmed beyond {windows[0]} tokens (a sliding window)" if windows else ""


def branch_points(content: Any, others: Iterable[Any], start: int) -> Sequence[int]:
    """Return the positions in ``content`` after ``start`` at which a copy is worth caching for ``others``, in rising order."""
    shared = sorted(min(shared_prefix_length(content, other), len(content) - 1) for other in others)
    points: list[int] = []
    last = start
    for index, length in enumerate(shared):
        if (length - last) * (len(shared) - index) >= MIN_SAVED_TOKENS:
            points.append(length)
            last = length
    return points
