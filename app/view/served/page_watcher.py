"""Long polls for changes of the page: all waiting clients share one look at the runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from app.view.contents.page_contents import Contents
from app.view.served.server_threads import in_thread

_WAIT = 30.0
"""The longest wait for a change, in seconds."""
_CROWDED = 4
"""The number of clients from which each waits only a moment: a browser has no more than six connections to a server."""
_CROWDED_WAIT = 2.0
_PAUSE = 0.25
"""The seconds between two looks at the runs."""


class Watcher:
    """Waiting clients. While nobody waits, nothing is read."""

    def __init__(self, contents: Contents, is_ending: Callable[[], bool]) -> None:
        """``is_ending`` says that the server ends, which ends every wait."""
        self._contents, self._is_ending = contents, is_ending
        self._waiting = 0
        self._look: asyncio.Task[int] | None = None

    async def wait(self, since: int, is_gone: Callable[[], Awaitable[bool]]) -> None:
        """Return once the page has changed since a revision, or after half a minute, or when the client is gone."""
        self._waiting += 1
        began = time.monotonic()
        try:
            while await self._revision() == since and not self._is_ending() and not await is_gone():
                if time.monotonic() - began > (_WAIT if self._waiting < _CROWDED else _CROWDED_WAIT):
                    return
        finally:
            self._waiting -= 1

    async def _revision(self) -> int:
        if self._look is None or self._look.done():
            self._look = asyncio.create_task(self._refresh())
        return await asyncio.shield(self._look)

    async def _refresh(self) -> int:
        await asyncio.sleep(_PAUSE)
        return await in_thread(self._contents.refresh)
