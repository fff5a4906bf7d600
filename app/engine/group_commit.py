"""Group commit: items that are committed together when commits are slow."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

GROUP_SIZE = 64
"""The most answers that wait for a commit, and so the most that are asked again after a kill."""

T = TypeVar("T")


class GroupCommit(Generic[T]):
    """Items that wait for a commit.

    A commit is due at once, unless the previous one ended more recently than it took. Items that arrive meanwhile share the
    next commit, so that on a disk of any speed at most half of the time goes into commits.
    """

    def __init__(self, commit: Callable[[Sequence[T]], None]) -> None:
        self._commit = commit
        self._waiting: list[T] = []
        self._last = self._duration = 0.0

    def add(self, item: T) -> None:
        self._waiting.append(item)

    def commit_if_due(self) -> None:
        if len(self._waiting) >= GROUP_SIZE or time.monotonic() - self._last >= self._duration:
            self.commit()

    def commit(self) -> None:
        if self._waiting:
            start = time.monotonic()
            self._commit(self._waiting)
            self._waiting = []
            self._last = time.monotonic()
            self._duration = self._last - start
