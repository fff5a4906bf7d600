"""LRU cache bounded by bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class LRUCache(Generic[T]):
    """Values by their keys; above ``limit`` bytes the least recently used is dropped, but never the newest."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self.misses = 0
        """The number of values that had to be computed."""

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """Return the value of ``key``, computed by ``make`` where it is not cached; ``size`` returns its bytes."""
        if key in self._entries:
            self._entries.move_to_end(key)
            return self._entries[key][0]
        value = make()
        self.misses += 1
        self._entries[key] = value, size(value)
        while len(self._entries) > 1 and sum(size for _, size in self._entries.values()) > self._limit:
            self._entries.popitem(last=False)
        return value
