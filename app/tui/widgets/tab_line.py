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
        self._current = next(iter(titles), "")

    def select(self, pane: str) -> None:
        """Mark ``pane`` as the one on display."""
        self._current = pane
        self.refresh()

    def retitle(self, titles: Mapping[str, str]) -> None:
        """Change titles of panes."""
        if titles != self._titles:
            self._titles = {**self._titles, **titles}
            self.refresh()

    def replace(self, titles: Mapping[str, str], current: str) -> None:
        """Show other panes, with ``current`` on display."""
        if (titles, current) != (self._titles, self._current):
            self._titles, self._current = dict(titles), current
            self.refresh()

    @property
    def current(self) -> str:
        """The pane on display."""
        return self._current

    def _visible(self) -> list[tuple[str, str]]:
        """Return the panes on display with their titles, padded; the first ones give way to the current one."""
        tabs = [(pane, f" {title} ") for pane, title in self._titles.items()]
        end = list(self._titles).index(self._current) + 1 if tabs else 0
        while (
            tabs and tabs[0][0] != self._current and sum(cell_len(title) for _, title in tabs[:end]) > self.size.width
        ):
            del tabs[0]
            end -= 1
        return tabs

    def render(self) -> Content:
        return Content("").join(
            Content.styled(title, f"bold reverse {HEADING}" if pane == self._current else DIM)
            for pane, title in self._visible()
        )

    def on_click(self, event: events.Click) -> None:
        end = 0
        for pane, title in self._visible():
            end += cell_len(title)
            if event.x < end:
                self.post_message(self.Chosen(pane))
                return
