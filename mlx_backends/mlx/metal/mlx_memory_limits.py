"""Limits on MLX's memory while a model answers, and the release of cached buffers under pressure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mlx_backends.mlx.metal.metal_switches import NO_WIRED_LIMIT, is_on, leave_wired_limit
from mlx_backends.models import memory_and_cache_sizes
from mlx_backends.models.free_memory import free_memory
from mlx_backends.models.memory_and_cache_sizes import gpu_memory, memory_fit, working_set

CACHE_SHARE = 1 / 8
"""Most of the working set that MLX's cache of freed buffers may take.

MLX's own limit is the whole memory: images of many sizes leave buffers that fit nothing which comes later.
"""

PRESSURE = 0.9
"""Share of the working set above which the cache of freed buffers is released."""

_MIN_RELEASE = 1 / 100  # of the working set: releasing less only makes the next step allocate it again


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """MLX's memory in bytes: the peak since it was last reset, in use now, and cached for reuse now."""

    peak: int
    active: int
    cache: int


class MemoryLimits:
    """The limits of one device. ``mx`` is ``mlx.core``, or a stand-in for it; ``device`` its information.

    ``limit`` is the working set in bytes that memory is measured by: Metal's recommended one, else an estimate of the memory
    available on this machine.
    """

    def __init__(self, mx: Any, device: Mapping[str, Any]) -> None:
        self._mx = mx
        self._metal = working_set(device)
        self._own_memory = self._metal is None and gpu_memory(device) is not None
        self.limit = memory_fit(0, device).available

    @classmethod
    def here(cls) -> MemoryLimits:
        """Return the limits of the device MLX computes on."""
        import mlx.core as mx

        return cls(mx, memory_and_cache_sizes.device_info())

    def set(self) -> None:
        """Wire a model's memory, and bound the cache of freed buffers.

        Only on Metal, which reports how much it can wire: elsewhere MLX has nothing to wire. An older macOS refuses to wire; then
        answers are slower under pressure, and right all the same. The switch ``RASHOMON_NO_WIRED_LIMIT`` wires nothing.
        """
        if self._metal is None or not self._mx.metal.is_available():
            return
        if is_on(NO_WIRED_LIMIT):
            leave_wired_limit(self._mx)
        with suppress(ValueError, RuntimeError):
            self._mx.set_wired_limit(self._metal)
        self._mx.set_cache_limit(int(self._metal * CACHE_SHARE))

    def usage(self) -> MemoryUsage:
        """Return MLX's memory usage now."""
        mx = self._mx
        return MemoryUsage(int(mx.get_peak_memory()), int(mx.get_active_memory()), int(mx.get_cache_memory()))

    def available(self) -> int:
        """Return the bytes that MLX may take now, those that it has included: the limit, or less if other programs leave less.

        Other programs' use of a GPU's own memory is not known.
        """
        usage, free = self.usage(), None if self._own_memory else free_memory()
        return self.limit if free is None else min(self.limit, usage.active + usage.cache + free)

    def relieve(self) -> bool:
        """Release the cache of freed buffers if memory runs short, and return whether it did.

        Called between answers, not between tokens.
        """
        usage = self.usage()
        pressed = usage.active + usage.cache > PRESSURE * self.limit and usage.cache > _MIN_RELEASE * self.limit
        if pressed:
            self._mx.clear_cache()
        return pressed
