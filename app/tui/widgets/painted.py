"""Painted: a text that knows whether it has been on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.geometry import Region
from textual.strip import Strip
from textual.visual import VisualType
from textual.widgets import Static

if TYPE_CHECKING:
    from app.tui.app import RashomonApp


class Painted(Static):
    """A text; :attr:`displayed` says whether what it says now was on the terminal before the key that is being handled.

    The compositor asks for its lines and writes them to the terminal before anything else happens, so what is called after
    that comes after the writing.
    """

    def __init__(self, content: VisualType = "", *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(content, id=id, classes=classes)
        self._version = 0
        self._written = False
        self.displayed = False

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Show another text, which has to be displayed before it counts."""
        self.unpaint()
        super().update(content, layout=layout)

    def unpaint(self) -> None:
        """Count as not displayed until it is painted again."""
        self._version += 1
        self._written = self.displayed = False
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        lines = super().render_lines(crop)
        if not self._written and crop.area:
            self.call_later(self._ask, self._version)
        return lines

    def _ask(self, version: int) -> None:
        if version == self._version and not self._written:
            self._written = True
            cast("RashomonApp", self.app).key_queue.when_displayed(lambda: self._now_displayed(version))

    def _now_displayed(self, version: int) -> None:
        if version == self._version:
            self.displayed = True
