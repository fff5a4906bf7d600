"""Pace: how many calls may be under way, and how long to wait after one that failed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

START = 4
"""Calls under way at first."""

BASE_S = 0.5
CAP_S = 30.0
LONGEST_PAUSE_S = 120.0
"""A server that wants a longer pause than this is not waited for."""


class RateLimit:
    """Additive increase, multiplicative decrease: one more call under way a round of successes, half of them where the
    server has too much to do. Not safe for threads; times are ``clock``'s seconds."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = max(1, most)
        self._clock = clock
        self._allowed = float(min(START, self._most))
        self._under_way = 0
        self._round = 0
        self._paused_until = 0.0

    @property
    def allowed(self) -> int:
        """The calls that may be under way now."""
        return int(self._allowed)

    def wait(self) -> float | None:
        """Seconds until a call may begin, as far as time decides it: 0 for now, None while too many are under way."""
        if self._under_way >= self.allowed:
            return None
        return max(0.0, self._paused_until - self._clock())

    def began(self) -> int:
        """A call begins; the round it belongs to is to be handed back when it ends."""
        self._under_way += 1
        return self._round

    def ended(self) -> None:
        """A call is over."""
        self._under_way -= 1

    def succeeded(self) -> None:
        """A call was answered."""
        self._allowed = min(float(self._most), self._allowed + 1 / self._allowed)

    def overloaded(self, began_in: int) -> None:
        """A call of the round ``began_in`` was too many; all that were under way with it count as one."""
        if began_in == self._round:
            self._round += 1
            self._allowed = max(1.0, self._allowed / 2)

    def pause(self, seconds: float) -> None:
        """No call begins for so long."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)


def backoff(failures: int, draw: Callable[[], float] = random.random) -> float:
    """Seconds to wait after the ``failures``-th failure: full jitter, evenly from 0 to twice as long each time."""
    return draw() * min(CAP_S, BASE_S * 2.0 ** min(failures - 1, 30))
