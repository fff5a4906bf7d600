"""Painted: a text that knows since when it has been on the terminal."""

from __future__ import annotations

import time

from textual.geometry import Region
from textual.strip import Strip
from textual.visual import VisualType
from textual.widgets import Static


class Painted(Static):
    """A text; :meth:`painted_before` says whether what it says now was on the terminal at some time.

    The compositor asks for its lines and writes them to the terminal before anything else happens, so what is called after
    that comes after the writing.
    """

    def __init__(self, content: VisualType = "", *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(content, id=id, classes=classes)
        self._version = 0
        self._since: float | None = None

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Show another text, which has to be painted before it counts."""
        self.unpaint()
        super().update(content, layout=layout)

    def unpaint(self) -> None:
        """Count as not painted until the next time it is."""
        self._version += 1
        self._since = None
        self.refresh()

    def painted_before(self, moment: float) -> bool:
        """Return whether it was painted before ``moment``, by the clock of Textual's events."""
        return self._since is not None and moment > self._since

    def render_lines(self, crop: Region) -> list[Strip]:
        lines = super().render_lines(crop)
        if self._since is None and crop.area:
            self.call_later(self._written, self._version)
        return lines

    def _written(self, version: int) -> None:
        if version == self._version and self._since is None:
            self._since = time.monotonic()
