"""LRU cache bounded by bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class LRUCache(Generic[T]):
    """Values by their keys; above ``limit`` bytes the least recently used is dropped, but never the newest."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._size = 0
        self.misses = 0
        """The number of values that had to be computed."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """Return the value of ``key``, computed by ``make`` where it is not cached; ``size`` returns its bytes."""
        value = self.find(key)
        if value is None:
            value = make()
            self.misses += 1
            self.put(key, value, size(value))
        return value

    def find(self, key: Hashable) -> T | None:
        """Return the value of ``key``; None where it is not cached."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def put(self, key: Hashable, value: T, size: int) -> None:
        """Cache a value of ``size`` bytes."""
        _, replaced = self._entries.pop(key, (None, 0))
        self._entries[key] = value, size
        self._size += size - replaced
        while len(self._entries) > 1 and self._size > self.limit:
            _, (_, dropped) = self._entries.popitem(last=False)
            self._size -= dropped

    def clear(self) -> None:
        """Drop all values."""
        self._entries.clear()
        self._size = 0
