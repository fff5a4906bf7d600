"""Load: processes that do nothing but compute, for some minutes of every ten."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_BUSY_S, _IDLE_S = 180.0, 420.0


@contextmanager
def loaded(processes: int) -> Iterator[None]:
    """Keep so many processes busy now and then until the block ends."""
    stop = threading.Event()
    thread = threading.Thread(target=_alternate, args=(processes, stop), daemon=True)
    if processes:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if processes:
            thread.join()


def _alternate(processes: int, stop: threading.Event) -> None:
    context = multiprocessing.get_context("spawn")
    while not stop.wait(_IDLE_S):
        children = [context.Process(target=_compute, daemon=True) for _ in range(processes)]
        for child in children:
            child.start()
        stop.wait(_BUSY_S)
        for child in children:
            child.kill()
            child.join()


def _compute() -> None:
    end = time.monotonic() + _BUSY_S
    while time.monotonic() < end:
        sum(range(10_000))
