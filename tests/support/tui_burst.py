"""A burst of keys: all of them are in the terminal's buffer before the interface reads the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from app.tui.tui_app import RashomonApp
from tests.support.tui_stage import until


async def burst(pilot: Pilot[Any], keys: Sequence[str]) -> None:
    """Send keys, named as in Textual, without waiting in between, and wait until the last one is handled."""
    app: Any = pilot.app
    for key in keys:
        name = _character_to_key(key) if len(key) == 1 else key
        event = events.Key(name, key if len(key) == 1 else {"space": " ", "enter": "\r"}.get(key))
        event.set_sender(app)
        app.post_message(event)
    await until(pilot, lambda: idle(app))


def idle(app: RashomonApp) -> bool:
    """Return True if every key is handled."""
    queue = app.key_queue
    return app._message_queue.empty() and not queue._waiting and (queue._task is None or queue._task.done())
