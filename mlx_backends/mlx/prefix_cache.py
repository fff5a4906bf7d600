"""Cache of prompt prefixes: their key-value caches, copied for prompts that share the prefix."""

from __future__ import annotations

import copy
from bisect import bisect, bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx_vlm.models.cache import KVCache

from mlx_backends.core.saved_work import shared_prefix_length

MIN_SAVED_TOKENS = 4
"""Fewest tokens that a pass of its own must save the known prompts that share a prefix."""

Cache = list[Any]
"""A model's key-value cache of one prompt: an entry for each layer."""


@dataclass(slots=True, eq=False)
class _Prefix:
    content: Any
    cache: Cache
    size: int
    likely: bool


class PrefixCache:
    """Least-recently-used cache of prefixes by their content (:class:`mlx_backends.mlx.mlx_preprocess.PreparedInputs`).

    ``cache_bytes`` is the memory for them; the newest is cached whatever its size.
    """

    def __init__(self, cache_bytes: int) -> None:
        self.limit = cache_bytes
        self._size = 0
        self._prefixes: dict[bytes, _Prefix] = {}
        self._trimmable: list[bytes] = []
        """The keys whose caches can be trimmed, sorted: a content shares the most with one of its neighbours."""

        self._rigid: set[bytes] = set()

    def put(self, content: Any, cache: Cache, *, likely: bool = True) -> None:
        """Cache ``cache``, which holds exactly ``content`` and must not be written to any more.

        Those that are not ``likely`` to be of use, and were of none yet, are dropped first, but not the newest: what follows it
        may not be known yet.
        """
        key = content.tobytes()
        likely = likely or (key in self._prefixes and self._prefixes[key].likely)
        self._drop(key)
        self._prefixes[key] = _Prefix(content, cache, sum(entry.nbytes for entry in cache), likely)
        self._size += self._prefixes[key].size
        if all(entry.is_trimmable() for entry in cache):
            insort(self._trimmable, key)
        else:
            self._rigid.add(key)
        while len(self._prefixes) > 1 and self._size > self.limit:
            older = list(self._prefixes)[:-1]
            self._drop(next((key for key in older if not self._prefixes[key].likely), older[0]))

    def longest_length(self, content: Any) -> int:
        """Return the length of the longest cached prefix of ``content``; :meth:`longest` says which ones count."""
        return self._longest(content)[0]

    def longest(self, content: Any) -> tuple[int, Cache | None]:
        """Return the length of the longest cached prefix of ``content``, and a copy of its cache.

        The last position is left out, because what follows a prompt is computed from it. A cache that cannot be trimmed is
        used only as a whole.
        """
        length, key = self._longest(content)
        if not length:
            return 0, None
        prefix = self._prefixes[key] = self._prefixes.pop(key)  # now the newest
        prefix.likely = True
        return length, trimmed_copy(prefix.cache, len(prefix.content) - length)

    def _longest(self, content: Any) -> tuple[int, bytes]:
        key = content.tobytes()
        place = bisect(self._trimmable, key)
        most, last = (0, b""), len(content) - 1
        for neighbour in self._trimmable[max(0, place - 1) : place + 1]:
            shared = min(shared_prefix_length(self._prefixes[neighbour].content, content), last)
            most = max(most, (shared, neighbour))
        for whole in self._rigid:
            if key.startswith(whole) and len(whole) < len(key):
                most = max(most, (len(self._prefixes[whole].content), whole))
        return most

    def _drop(self, key: bytes) -> None:
        prefix = self._prefixes.pop(key, None)
        if prefix is None:
            return
        self._size -= prefix.size
        if key in self._rigid:
            self._rigid.remove(key)
        else:
            del self._trimmable[bisect_left(self._trimmable, key)]


def trimmed_copy(cache: Cache, surplus: int) -> Cache:
    """Return a copy of ``cache`` without its last ``surplus`` positions."""
    copied = copy.deepcopy(cache)
    if surplus:
        for entry in copied:
            entry.trim(surplus)
    return copied


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


def merged_cache(caches: Sequence[Cache]) -> Cache:
    """Return the caches of several rows as one of a batch, or that of one row as it is."""
    if len(caches) == 1:
        return caches[0]
    return [type(layer[0]).merge(list(layer)) for layer in zip(*caches, strict=True)]
