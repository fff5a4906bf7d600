"""A text that knows whether it has been displayed on the terminal."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

from textual.dom import NoScreen
from textual.errors import NoWidget
from textual.geometry import Region
from textual.strip import Strip
from textual.visual import VisualType
from textual.widgets import Static

from app.tui.screen_services import Services


class DisplayedText(Static):
    """A text; :attr:`displayed` is True if its current content was on the terminal before the key that is being handled.

    The compositor requests the lines and writes them to the terminal before anything else happens, so a callback scheduled
    from there runs after the writing. An ``optional`` text also counts as displayed where the terminal has no room for it.
    """

    def __init__(
        self, content: VisualType = "", *, id: str | None = None, classes: str | None = None, optional: bool = False
    ) -> None:
        super().__init__(content, id=id, classes=classes)
        self._optional = optional
        self._version = 0
        self._written = False
        self.displayed = False

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Set another text, which counts as displayed only once it is painted."""
        self.mark_undisplayed()
        super().update(content, layout=layout)

    def mark_undisplayed(self) -> None:
        """Count as not displayed until it is painted again."""
        self._version += 1
        self._written = self.displayed = False
        self.refresh()
        self.skip_if_hidden()

    def skip_if_hidden(self) -> None:
        """Count an optional text as displayed once its screen is painted without it."""
        if self._optional:
            self.call_after_refresh(self._skip_if_hidden, self._version)

    def _skip_if_hidden(self, version: int) -> None:
        with suppress(NoWidget, NoScreen):  # its screen is not laid out yet, or closed
            if not self.screen.find_widget(self).visible_region.area:
                self._query_terminal(version)

    def render_lines(self, crop: Region) -> list[Strip]:
        lines = super().render_lines(crop)
        if not self._written and crop.area:
            self.call_later(self._query_terminal, self._version)
        return lines

    def _query_terminal(self, version: int) -> None:
        if version == self._version and not self._written:
            self._written = True
            cast(Services, self.app).key_queue.when_displayed(lambda: self._set_displayed(version))

    def _set_displayed(self, version: int) -> None:
        if version == self._version:
            self.displayed = True
