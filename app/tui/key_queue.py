"""Queue of keys: delivers them one at a time, in order, and none to a dialog that was not yet on the terminal.

The time at which a key is read does not tell when it was pressed, since a busy machine reads late; the order of the input
does. :meth:`KeyQueue.when_displayed` queries the cursor position after writing a frame, and the terminal's reply follows
the keys pressed before it had the frame. Keys ahead of the reply were typed ahead; keys after it were not.
"""

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
"""The longest time that a key waits for the previous one; a slower handler blocks no keys."""
_REPLY_SECONDS = 1.0
"""The time to wait for the terminal's reply before the query is repeated. A terminal that has never replied is assumed, after
this time, to have displayed what was written."""
_QUERY_LINE = 2
"""The line of the cursor during a query; in line 1 the reply would read as Shift+F3."""


class _NoReply(events.CursorPosition, bubble=False):
    """Stand-in for the reply of a terminal that sends none."""


@runtime_checkable
class GuardedScreen(Protocol):
    """A screen that accepts a key only if it was pressed after the screen had been displayed."""

    @property
    def displayed(self) -> bool:
        """True if the screen was on the terminal before the current input."""


class KeyQueue:
    """Delivery of keys and pastes, one at a time.

    Textual sends a key to the widget in focus when the key is read, and looks up its binding once the key has bubbled to the
    app. In a burst, a key would so be handled before the dialog or focus change that an earlier key triggered. Here a key
    waits until every message caused by the previous one has been handled.
    """

    def __init__(self, app: App[Any], deliver: Callable[[events.Event], Awaitable[None]]) -> None:
        self._app, self._deliver = app, deliver
        self._waiting: deque[events.Event] = deque()
        self._task: asyncio.Task[None] | None = None
        self._queries: dict[int, tuple[float, Callable[[], None]]] = {}
        """The pending queries by cursor column: time of the query, and the callback."""
        self._column = 0
        self._replies = False
        """True once this terminal has replied."""

    def put(self, event: events.Event) -> None:
        """Queue a key, a paste or a reply of the terminal."""
        self._waiting.append(event)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())

    def accepts(self, event: events.Event) -> bool:
        """Return True if the screen that would get ``event`` was on the terminal before it."""
        stack = self._app.screen_stack
        if not (stack and isinstance(stack[-1], GuardedScreen)) or stack[-1].displayed:
            return True
        self._repeat_query()
        return False

    def when_displayed(self, then: Callable[[], None]) -> None:
        """Call ``then`` once the terminal has displayed everything written so far and all earlier keys are handled."""
        driver = self._app._driver
        if driver is None:
            return
        self._column = 2 + (self._column - 1) % max(1, self._app.size.width - 1)
        column = self._column
        self._queries.pop(column, None)
        self._queries[column] = time.monotonic(), then
        if driver.is_headless:
            self._app.post_message(events.CursorPosition(column - 1, _QUERY_LINE - 1))
            return
        cursor = self._app.cursor_position
        driver.write(f"\x1b[{_QUERY_LINE};{column}H\x1b[6n\x1b[{cursor.y + 1};{cursor.x + 1}H")
        if not self._replies:
            self._app.set_timer(_REPLY_SECONDS, lambda: self._give_up(column))

    def _repeat_query(self) -> None:
        """Repeat the newest query if its reply seems lost."""
        if self._queries:
            column, (since, then) = next(reversed(self._queries.items()))
            if time.monotonic() - since > _REPLY_SECONDS:
                del self._queries[column]
                self.when_displayed(then)

    def _give_up(self, column: int) -> None:
        if not self._replies and column in self._queries:
            self.put(_NoReply(column - 1, _QUERY_LINE - 1))

    def _handle_reply(self, reply: events.CursorPosition) -> None:
        """Call the callbacks of this query and all earlier ones: the terminal replies in order."""
        column = reply.x + 1
        if reply.y + 1 != _QUERY_LINE or column not in self._queries:
            return
        self._replies = self._replies or not isinstance(reply, _NoReply)
        while True:
            first = next(iter(self._queries))
            self._queries.pop(first)[1]()
            if first == column:
                return

    async def _drain(self) -> None:
        try:
            while self._waiting and self._app.is_running:
                event = self._waiting.popleft()
                if isinstance(event, events.CursorPosition):
                    self._handle_reply(event)
                elif self.accepts(event):
                    await self._deliver(event)
                    await self._until_idle()
        except Exception as error:
            self._app.call_later(_reraise, error)

    async def _until_idle(self) -> None:
        """Wait until no widget has or handles a message."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end and self._app.is_running:
            if any(map(_busy, self._pumps())):
                await asyncio.sleep(0.001)
                continue
            await asyncio.gather(
                *(_until_handled(pump, end) for pump in (self._app, self._app.screen, self._app.focused) if pump)
            )
            if not any(map(_busy, self._pumps())):
                return

    def _pumps(self) -> list[MessagePump]:
        screens = [widget for screen in self._app.screen_stack for widget in screen.walk_children(with_self=True)]
        return [self._app, *screens]


def _busy(pump: MessagePump) -> bool:
    """Return True if a message waits, or the widget is not mounted yet."""
    return bool(pump._next_callbacks) or not pump._message_queue.empty() or not pump._is_mounted


async def _until_handled(pump: MessagePump, end: float) -> None:
    """Wait until a widget has handled its current message."""
    handled = asyncio.Event()
    if pump.call_later(handled.set):
        with suppress(TimeoutError):
            await asyncio.wait_for(handled.wait(), max(0.0, end - time.monotonic()))


def _reraise(error: Exception) -> None:
    """Raise a key handler's error on the app's loop, as the app would not notice it in the task."""
    raise error
