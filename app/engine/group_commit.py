"""Group: what waits for a commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

GROUP_SIZE = 64
"""At most this many answers wait for a commit, so that no more than these are asked again after a kill."""

T = TypeVar("T")


class GroupCommit(Generic[T]):
    """What waits for a commit.

    It is due at once, unless the last commit is more recent than a commit takes; then what comes meanwhile shares the
    next one, so that however slow the disk is, no more than half of the time goes into commits.
    """

    def __init__(self, commit: Callable[[Sequence[T]], None]) -> None:
        self._commit = commit
        self._waiting: list[T] = []
        self._last = self._took = 0.0

    def add(self, item: T) -> None:
        self._waiting.append(item)

    def commit_if_due(self) -> None:
        if len(self._waiting) >= GROUP_SIZE or time.monotonic() - self._last >= self._took:
            self.commit()

    def commit(self) -> None:
        if self._waiting:
            began = time.monotonic()
            self._commit(self._waiting)
            self._waiting = []
            self._last = time.monotonic()
            self._took = self._last - began
