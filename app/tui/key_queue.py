"""Queue of keys: one at a time, in the order they were pressed, and none for a dialog that was not yet on the terminal.

The time at which a key is read says nothing about when it was pressed: a busy machine reads it late. The order of the input
does: :meth:`KeyQueue.when_displayed` asks the terminal, behind the frame, where its cursor is, and the terminal answers behind
the keys that were pressed before it had the frame. Keys in front of the answer were typed ahead, those behind it were not.
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
"""The longest time a key waits for the one before it; a handler that takes longer blocks no keys."""


_NO_ANSWER_SECONDS = 1.0
"""How long to wait for a terminal's answer before it is asked again; and one that has never answered, before it is taken to
have displayed what was written."""
_ASK_AT = 2
"""The line that the cursor is put on to be asked for: in line 1, the answer would read as Shift+F3."""


class _NoAnswer(events.CursorPosition, bubble=False):
    """Stands for the answer of a terminal that gives none."""


@runtime_checkable
class GuardedScreen(Protocol):
    """A screen that takes a key only if it was pressed after the screen had been displayed."""

    @property
    def displayed(self) -> bool:
        """Return whether the screen was on the terminal before the input that comes now."""


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
        self._asked: dict[int, tuple[float, Callable[[], None]]] = {}
        """The terminal's answers that are awaited, by the column of the cursor: since when, and what follows."""
        self._column = 0
        self._answers = False
        """Whether this terminal has ever answered."""

    def put(self, event: events.Event) -> None:
        """Deliver a key, a paste or an answer of the terminal after those before it."""
        self._waiting.append(event)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work_off())

    def accepts(self, event: events.Event) -> bool:
        """Return whether the screen that would get ``event`` was on the terminal before it."""
        stack = self._app.screen_stack
        if not (stack and isinstance(stack[-1], GuardedScreen)) or stack[-1].displayed:
            return True
        self._ask_again()
        return False

    def when_displayed(self, then: Callable[[], None]) -> None:
        """Call ``then`` when the terminal has what was written so far, and every key from before that has been dealt with."""
        driver = self._app._driver
        if driver is None:
            return
        self._column = 2 + (self._column - 1) % max(1, self._app.size.width - 1)
        column = self._column
        self._asked.pop(column, None)
        self._asked[column] = time.monotonic(), then
        if driver.is_headless:
            self._app.post_message(events.CursorPosition(column - 1, _ASK_AT - 1))
            return
        back = self._app.cursor_position
        driver.write(f"\x1b[{_ASK_AT};{column}H\x1b[6n\x1b[{back.y + 1};{back.x + 1}H")
        if not self._answers:
            self._app.set_timer(_NO_ANSWER_SECONDS, lambda: self._give_up(column))

    def _ask_again(self) -> None:
        """Repeat the question whose answer was lost."""
        if self._asked:
            column, (since, then) = next(reversed(self._asked.items()))
            if time.monotonic() - since > _NO_ANSWER_SECONDS:
                del self._asked[column]
                self.when_displayed(then)

    def _give_up(self, column: int) -> None:
        if not self._answers and column in self._asked:
            self.put(_NoAnswer(column - 1, _ASK_AT - 1))

    def _answered(self, answer: events.CursorPosition) -> None:
        """Do what waited for this answer and for those before it: the terminal answers in order."""
        column = answer.x + 1
        if answer.y + 1 != _ASK_AT or column not in self._asked:
            return
        self._answers = self._answers or not isinstance(answer, _NoAnswer)
        while True:
            first = next(iter(self._asked))
            self._asked.pop(first)[1]()
            if first == column:
                return

    async def _work_off(self) -> None:
        try:
            while self._waiting and self._app.is_running:
                event = self._waiting.popleft()
                if isinstance(event, events.CursorPosition):
                    self._answered(event)
                elif self.accepts(event):
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
