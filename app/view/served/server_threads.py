"""Work of the server in threads that do not outlive it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

_MOST = threading.BoundedSemaphore(16)
"""The number of threads that work at a time."""


async def in_thread(work: Callable[[], T]) -> T:
    """Return the result of ``work``, computed in a thread of its own. Ctrl-C ends the process without waiting for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def resolve(result: T | None, error: BaseException | None) -> None:
        if future.done():  # the request is gone
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def perform() -> None:
        result, failure = None, None
        with _MOST:
            try:
                result = work()
            except Exception as error:
                failure = error
        with suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(resolve, result, failure)

    threading.Thread(target=perform, daemon=True).start()
    return await future
