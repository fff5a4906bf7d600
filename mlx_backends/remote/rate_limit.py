"""Rate limit: the number of concurrent calls, and the delay after one that failed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

INITIAL_CALLS = 4
"""Concurrent calls at first."""

BACKOFF_BASE_S = 0.5
MAX_BACKOFF_S = 30.0
MAX_PAUSE_S = 120.0
"""Longest pause that a server may ask for; a request that would wait longer fails."""


class RateLimit:
    """Additive increase, multiplicative decrease of concurrent calls.

    There is one more call after each round of successes, and half as many where the server is overloaded. Not thread-safe;
    times are ``clock``'s seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = max(1, most)
        self._clock = clock
        self._allowed = float(min(INITIAL_CALLS, self._most))
        self._under_way = 0
        self._round = 0
        self._paused_until = 0.0

    @property
    def allowed(self) -> int:
        """Return the number of calls that may be in progress now."""
        return int(self._allowed)

    def wait(self) -> float | None:
        """Return the seconds until a call may start, as far as time decides: 0 for now, None while too many are in progress."""
        if self._under_way >= self.allowed:
            return None
        return max(0.0, self._paused_until - self._clock())

    def began(self) -> int:
        """Record the start of a call, and return its round, to be passed back when it ends."""
        self._under_way += 1
        return self._round

    def ended(self) -> None:
        """Record the end of a call."""
        self._under_way -= 1

    def succeeded(self) -> None:
        """Record that a call was answered."""
        self._allowed = min(float(self._most), self._allowed + 1 / self._allowed)

    def overloaded(self, began_in: int) -> None:
        """Record that a call of the round ``began_in`` overloaded the server; all calls of one round count once."""
        if began_in == self._round:
            self._round += 1
            self._allowed = max(1.0, self._allowed / 2)

    def pause(self, seconds: float) -> None:
        """Start no call for ``seconds``."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)


def backoff(failures: int, draw: Callable[[], float] = random.random) -> float:
    """Return the seconds to wait after the ``failures``-th failure: full jitter, evenly from 0 to a maximum that doubles."""
    return draw() * min(MAX_BACKOFF_S, BACKOFF_BASE_S * 2.0 ** min(failures - 1, 30))
