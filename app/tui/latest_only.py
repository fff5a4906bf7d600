"""A thread for work that is requested faster than it is done: of the requests that wait, only the newest is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.tui.screen_services import BackgroundScreen

Work = Callable[[], Any]
Then = Callable[[Any], None]


class LatestOnly:
    """One thread for work requested at every keystroke, so that threads do not pile up behind a slow piece of work."""

    def __init__(self, screen: BackgroundScreen, group: str) -> None:
        self._screen, self._group = screen, group
        self._busy = False
        self._waiting: tuple[Work, Then] | None = None

    def submit(self, work: Work, then: Then) -> None:
        """Run ``work`` in a thread and call ``then`` with its result on the event loop, unless a newer request arrives.

        An exception that ``work`` raises is displayed in an error dialog.
        """
        if self._busy:
            self._waiting = (work, then)
            return
        self._busy = True
        self._screen.attempt(work, then, ended=self._next, group=self._group)

    def _next(self) -> None:
        """Begin what waits, whereby the result of what has ended is dropped."""
        self._busy = False
        if self._waiting is not None:
            newer, self._waiting = self._waiting, None
            self.submit(*newer)
