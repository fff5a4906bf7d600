"""Latest: work in a thread, one piece at a time; of what is asked for meanwhile only the newest is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.tui.screens.base import RashomonScreen

Work = Callable[[], Any]
Then = Callable[[Any], None]


class LatestOnly:
    """For what is asked for at every key: threads do not pile up behind a slow piece of work."""

    def __init__(self, screen: RashomonScreen, group: str) -> None:
        self._screen, self._group = screen, group
        self._busy = False
        self._waiting: tuple[Work, Then] | None = None

    def ask(self, work: Work, then: Then) -> None:
        """Do ``work`` in a thread and call ``then`` with what it returned on the event loop, unless something newer was asked.

        What it raises is shown as an error.
        """
        if self._busy:
            self._waiting = (work, then)
            return
        self._busy = True

        def kept() -> tuple[Any, Exception | None]:
            try:
                return work(), None
            except Exception as error:
                return None, error

        def done(found: tuple[Any, Exception | None]) -> None:
            self._busy = False
            if self._waiting is not None:
                newer, self._waiting = self._waiting, None
                self.ask(*newer)
            elif found[1] is not None:
                self._screen.rashomon.failed(found[1])
            else:
                then(found[0])

        self._screen.in_thread(kept, done, group=self._group)
