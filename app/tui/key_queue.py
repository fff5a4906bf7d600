"""Keys in the order they were pressed, each handled to its end before the next, and none by a dialog that was not yet painted."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from textual import events
from textual.message_pump import MessagePump

if TYPE_CHECKING:
    from textual.app import App

_PATIENCE_SECONDS = 2.0
"""The longest time a key waits for the one before it; a handler that takes longer blocks no keys."""


@runtime_checkable
class Guarded(Protocol):
    """A screen that takes a key only if it was pressed after the screen had been painted."""

    def painted_before(self, pressed: float) -> bool:
        """Return whether what the screen shows was on the terminal at the time ``pressed``."""


class KeyQueue:
    """Delivers keys and pastes one at a time.

    Textual hands a key to the widget that has the focus when the key is read, and looks its binding up when the key has
    bubbled to the app. Keys that arrive in one burst would so meet the dialogs and the focus that earlier ones only began
    to bring about. Here a key waits until every message that the one before it caused has been handled.
    """

    def __init__(self, app: App[Any], deliver: Callable[[events.Event], Awaitable[None]]) -> None:
        self._app, self._deliver = app, deliver
        self._waiting: deque[events.Event] = deque()
        self._task: asyncio.Task[None] | None = None
        self.pressed = 0.0
        """When the key that is being handled was pressed, by the clock of Textual's events."""

    def put(self, event: events.Event) -> None:
        """Deliver a key or a paste after those before it."""
        self._waiting.append(event)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work_off())

    def accepts(self, event: events.Event) -> bool:
        """Return False where the screen that would get ``event`` was not painted when it came about."""
        stack = self._app.screen_stack
        return not (stack and isinstance(stack[-1], Guarded)) or stack[-1].painted_before(event.time)

    async def _work_off(self) -> None:
        try:
            while self._waiting and self._app.is_running:
                event = self._waiting.popleft()
                if self.accepts(event):
                    self.pressed = event.time
                    await self._deliver(event)
                    await self._settled()
        except Exception as error:
            self._app.call_later(_fail, error)

    async def _settled(self) -> None:
        """Wait until no widget has a message to handle, or handles one."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end and self._app.is_running:
            if any(map(_busy, self._pumps())):
                await asyncio.sleep(0.001)
                continue
            await asyncio.gather(
                *(_passed(pump, end) for pump in (self._app, self._app.screen, self._app.focused) if pump)
            )
            if not any(map(_busy, self._pumps())):
                return

    def _pumps(self) -> list[MessagePump]:
        screens = [widget for screen in self._app.screen_stack for widget in screen.walk_children(with_self=True)]
        return [self._app, *screens]


def _busy(pump: MessagePump) -> bool:
    """Return whether a message waits, or whether the widget is still being made."""
    return bool(pump._next_callbacks) or not pump._message_queue.empty() or not pump._is_mounted


async def _passed(pump: MessagePump, end: float) -> None:
    """Wait until a widget has handled what it was handling."""
    handled = asyncio.Event()
    if pump.call_later(handled.set):
        with suppress(TimeoutError):
            await asyncio.wait_for(handled.wait(), max(0.0, end - time.monotonic()))


def _fail(error: Exception) -> None:
    """Raise what a key led to where the app handles it: a task's own end is told to nobody."""
    raise error
