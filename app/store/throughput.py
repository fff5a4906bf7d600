"""How fast a run goes and when it will be done, from this process's own last minute."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

WINDOW_SECONDS = 60.0


class Throughput:
    """Speed over the last minute. What was done before the first sample, as after a resume, never counts as speed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque()

    def sample(self, done: int) -> None:
        """Note how many answers there are now."""
        now = self._clock()
        if self._samples and done < self._samples[-1][1]:
            self._samples.clear()
        self._samples.append((now, done))
        while len(self._samples) > 2 and self._samples[1][0] <= now - WINDOW_SECONDS:
            self._samples.popleft()

    @property
    def per_second(self) -> float | None:
        """Answers a second, None until something was answered."""
        if len(self._samples) < 2:
            return None
        (began, before), (now, done) = self._samples[0], self._samples[-1]
        return (done - before) / (now - began) if done > before and now > began else None

    def eta(self, left: int) -> float | None:
        """Seconds until ``left`` more answers are there, None where that cannot be said."""
        if left == 0:
            return 0.0
        return None if self.per_second is None else left / self.per_second


def duration(seconds: float | None) -> str:
    """Seconds as people say them: ``42s``, ``3m05s``, ``2h07m``; ``-`` for None."""
    if seconds is None:
        return "-"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02}m"
