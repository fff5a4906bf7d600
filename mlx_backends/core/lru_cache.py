"""What was made once and is asked for again, within a limit of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class LRUCache(Generic[T]):
    """Things by their keys; with more than ``limit`` bytes the one that was longest unused goes first, the newest never."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self.made = 0
        """How many things had to be made."""

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """The thing of ``key``; where it is not kept it is made, and ``size`` says how many bytes it takes."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        found = make()
        self.made += 1
        self._kept[key] = found, size(found)
        while len(self._kept) > 1 and sum(size for _, size in self._kept.values()) > self._limit:
            self._kept.popitem(last=False)
        return found
