"""Faults of Metal, injected into MLX where there is no Metal, as mlx 0.32 reports them.

A failed computation leaves wrong values in its arrays. Its error is raised by the call that meets it first, perhaps a later one
than that which computed, and at the latest by the next synchronisation; it is cleared as it is raised. Computations in flight
fail with it, so that the next calls may raise again. A process whose submissions Metal ignores never computes again.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MESSAGES = {
    "memory": "Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
    "timeout": "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)",
    "interactivity": "Impacting Interactivity (0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity)",
    "ignored": "Ignored (for causing prior/excessive GPU errors) (00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored)",
    "victim": "Discarded (victim of GPU error/recovery) (00000005:kIOGPUCommandBufferCallbackErrorInnocentVictim)",
    "buffers": "[metal::malloc] Resource limit (499000) exceeded.",
    "unserved": "[metal::Device] Unable to load kernel vn_copyfloat32\nUnable to reach MTLCompilerService. The process is "
    "unavailable because the compiler is no longer active.\n",
}
WEIGHTS = {"memory": 2, "timeout": 5, "interactivity": 5, "ignored": 1, "victim": 5, "buffers": 2, "unserved": 1}
FINAL = ("ignored", "unserved")
APART = 4
"""The faults from one that ends a process to the next: its suspects are asked alone meanwhile, and chance hits none twice."""


def failure(kind: str) -> RuntimeError:
    """The error that MLX raises for a fault of this kind."""
    message = MESSAGES[kind]
    return RuntimeError(message if message.startswith("[") else f"[METAL] Command buffer execution failed: {message}.")


class Injector:
    """Faults at random calls of MLX, ``count`` of them over all processes that share the file ``log``.

    ``gap`` bounds the calls between two of them, drawn from ``seed``. A line of ``log`` is the kind of a fault and the call.
    """

    def __init__(self, log: Path, count: int, gap: tuple[int, int], seed: int) -> None:
        self._log = log
        before = [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []
        self._left = count - len(before)
        self._final_after = next((APART - age for age, kind in enumerate(reversed(before), 1) if kind in FINAL), 0)
        self._random = random.Random(f"{seed} {self._left}")
        self._gap = gap
        self._wait = self._random.randint(*gap)
        self._streams = threading.local()  # a thread has its own, with their own errors
        self._lost = ""

    def call(self, site: str, compute: Callable[[], Any], spoil: Callable[[Any], Any]) -> Any:
        """Make a call; ``spoil`` makes its result, or what it computed, wrong."""
        if self._lost:
            raise failure(self._lost)
        pending: list[str] = self._streams.__dict__.setdefault("pending", [])
        if pending and (site == "synchronize" or self._random.random() < 0.5):
            raise failure(pending.pop(0))
        self._wait -= 1
        if self._left <= 0 or self._wait > 0:
            return compute()
        self._left -= 1
        self._wait = self._random.randint(*self._gap)
        kinds = {kind: weight for kind, weight in WEIGHTS.items() if self._final_after <= 0 or kind not in FINAL}
        self._final_after -= 1
        kind = self._random.choices(list(kinds), list(kinds.values()))[0]
        with open(self._log, "a") as log:
            log.write(f"{kind} {site}\n")
        self._lost = kind if kind in FINAL else ""
        pending += [kind] * self._random.randint(1, 3)
        result = spoil(compute())
        if site == "synchronize" or self._random.random() < 0.5:
            raise failure(pending.pop(0))
        return result


def install(orders: dict[str, Any]) -> None:
    """Inject faults into this process: keys ``log``, ``count``, ``gap`` and ``seed`` as in :class:`Injector`."""
    import mlx.core as mx

    injector = Injector(Path(orders["log"]), orders["count"], tuple(orders["gap"]), orders["seed"])

    def wrap_evaluation(name: str) -> None:
        evaluate = getattr(mx, name)

        def evaluated(*arrays: Any) -> None:
            def spoil(_: Any) -> None:
                for array in _arrays(arrays):
                    array[...] = mx.zeros_like(array)
                evaluate(*arrays)

            injector.call(name, lambda: evaluate(*arrays), spoil)

        setattr(mx, name, evaluated)

    def wrap_reading(name: str) -> None:
        read = getattr(mx.array, name)
        zero = mx.zeros_like

        def reading(array: Any) -> Any:
            return injector.call(name, lambda: read(array), lambda _: read(zero(array)))

        setattr(mx.array, name, reading)

    synchronize = mx.synchronize
    mx.synchronize = lambda *stream: injector.call("synchronize", lambda: synchronize(*stream), lambda result: result)
    for name in ("eval", "async_eval"):
        wrap_evaluation(name)
    for name in ("item", "tolist"):
        wrap_reading(name)
    _synchronise_at_the_end()


def _arrays(tree: Any) -> Iterator[Any]:
    import mlx.core as mx
    from mlx.utils import tree_flatten

    for _, value in tree_flatten(list(tree)):
        if isinstance(value, mx.array):
            yield value


def _synchronise_at_the_end() -> None:
    """Let the libraries synchronise after an answer, as they do on Metal alone."""
    import mlx.core as mx
    import mlx_lm.generate as lm
    from mlx_vlm.generate import ar, dispatch

    @contextmanager
    def wired_limit(model: Any, streams: Any = None) -> Iterator[None]:
        try:
            yield
        finally:
            for stream in streams or [None]:
                mx.synchronize(stream)

    lm.wired_limit = ar.wired_limit = dispatch.wired_limit = wired_limit
