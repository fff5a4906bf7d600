"""What MLX may hold of the machine's memory while a model answers, and what it gives back when that runs short."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mlx_backends.models import memory_estimate
from mlx_backends.models.memory_estimate import fits, working_set

CACHE_SHARE = 1 / 8
"""MLX keeps freed buffers for use again, at most so much of the working set. Its own limit is the whole memory's: images of
many sizes leave buffers that fit nothing which comes later."""

PRESSURE = 0.9
"""Where what is in use and what is kept for use again are more than this share of the working set, the latter is given back."""

_WORTH = 1 / 100  # of the working set: clearing less than this only makes the next step allocate it again

_SHORT = re.compile(
    r"out of memory|insufficient memory|outofmemory|unable to allocate|attempting to allocate|bad_?alloc", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """MLX's memory in bytes: the most since the peak was last reset, in use now, kept for use again now."""

    peak: int
    active: int
    cache: int


class MemoryLimits:
    """The limits of one device. ``mx`` is ``mlx.core``, or what stands for it; ``device`` its information.

    ``limit`` is the working set in bytes that memory is measured by: Metal's recommended one, else an estimate of what this
    machine has to give.
    """

    def __init__(self, mx: Any, device: Mapping[str, Any]) -> None:
        self._mx = mx
        self._metal = working_set(device)
        self.limit = fits(0, device).have

    @classmethod
    def here(cls) -> MemoryLimits:
        """The limits of the device MLX computes on."""
        import mlx.core as mx

        return cls(mx, memory_estimate.device_info())

    def set(self) -> None:
        """Keep what a model uses resident (wired), and bound the cache of freed buffers.

        On Metal alone, which says how much it can wire: elsewhere MLX has nothing to wire. An older macOS refuses to wire; then
        answers are slower under pressure, and right all the same.
        """
        if self._metal is None or not self._mx.metal.is_available():
            return
        with suppress(ValueError, RuntimeError):
            self._mx.set_wired_limit(self._metal)
        self._mx.set_cache_limit(int(self._metal * CACHE_SHARE))

    def usage(self) -> MemoryUsage:
        """MLX's memory now."""
        mx = self._mx
        return MemoryUsage(int(mx.get_peak_memory()), int(mx.get_active_memory()), int(mx.get_cache_memory()))

    def relieve(self) -> bool:
        """Give the cache of freed buffers back where memory runs short; whether it did. Between answers, not between tokens."""
        now = self.usage()
        pressed = now.active + now.cache > PRESSURE * self.limit and now.cache > _WORTH * self.limit
        if pressed:
            self._mx.clear_cache()
        return pressed


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception, or what it was raised from, says that memory ran out: Python's, or one of MLX's."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, MemoryError) or (isinstance(seen, RuntimeError) and _SHORT.search(str(seen))):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
