"""A line with the titles of panes, of which one is on display; a click chooses one."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from app.tui.theme import DIM, HEADING


class TabLine(Widget):
    """The titles of panes by their ids; the titles must be ours."""

    class Chosen(Message):
        """A title was clicked."""

        def __init__(self, pane: str) -> None:
            self.pane = pane
            super().__init__()

    def __init__(self, titles: Mapping[str, str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._titles = dict(titles)
        self._current = next(iter(titles))

    def select(self, pane: str) -> None:
        """Mark ``pane`` as the one on display."""
        self._current = pane
        self.refresh()

    def retitle(self, titles: Mapping[str, str]) -> None:
        """Change titles of panes."""
        if titles != self._titles:
            self._titles = {**self._titles, **titles}
            self.refresh()

    @property
    def current(self) -> str:
        """The pane on display."""
        return self._current

    def render(self) -> Content:
        return Content("").join(
            Content.styled(f" {title} ", f"bold reverse {HEADING}" if pane == self._current else DIM)
            for pane, title in self._titles.items()
        )

    def on_click(self, event: events.Click) -> None:
        end = 0
        for pane, title in self._titles.items():
            end += cell_len(title) + 2
            if event.x < end:
                self.post_message(self.Chosen(pane))
                return
