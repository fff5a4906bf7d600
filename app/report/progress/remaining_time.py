"""Throughput of a run and its remaining time, from the last minute as seen by this process."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

WINDOW_SECONDS = 60.0


class Throughput:
    """Throughput over the last minute. Answers from before the first sample, as after a resume, do not count."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque()

    def sample(self, done: int) -> None:
        """Record the current number of answers."""
        now = self._clock()
        if self._samples and done < self._samples[-1][1]:
            self._samples.clear()
        self._samples.append((now, done))
        while len(self._samples) > 2 and self._samples[1][0] <= now - WINDOW_SECONDS:
            self._samples.popleft()

    @property
    def per_second(self) -> float | None:
        """Answers per second; None before the first answer."""
        if len(self._samples) < 2:
            return None
        (began, done_before), (now, done) = self._samples[0], self._samples[-1]
        return (done - done_before) / (now - began) if done > done_before and now > began else None

    def eta(self, remaining: int) -> float | None:
        """Return the seconds until ``remaining`` more answers are done; None if unknown."""
        if remaining == 0:
            return 0.0
        return None if self.per_second is None else remaining / self.per_second


def duration(seconds: float | None) -> str:
    """Format seconds for people: ``42s``, ``3m05s``, ``2h07m``; ``-`` for None."""
    if seconds is None:
        return "-"
    total = round(seconds)
    if total < 60:
        return f"{total}s"
    if total < 3600:
        return f"{total // 60}m{total % 60:02}s"
    return f"{total // 3600}h{total % 3600 // 60:02}m"
