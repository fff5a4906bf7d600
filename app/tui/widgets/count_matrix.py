"""A small matrix of counts with a cursor on its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.widget import Widget

from app.tui.hostile_text import sanitize
from app.tui.key_commands import bindings
from app.tui.theme import DIM

ALL = "all"
_WIDEST = 14
_CURSOR = Style(reverse=True, bold=True)


class Matrix(Widget, can_focus=True):
    """Counts of label changes with sums, set by :meth:`show`; the diagonal counts the unchanged labels."""

    name_ = "matrix"
    BINDINGS: ClassVar[list[BindingType]] = bindings("matrix")

    class Selected(Message):
        """A cell was opened, which counts changes from ``was`` to ``now``; None stands for all labels."""

        def __init__(self, was: str | None, now: str | None, count: int) -> None:
            self.was, self.now, self.count = was, now, count
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._words: tuple[str, ...] = ()
        self._counts: Mapping[tuple[str, str], int] = {}
        self._place = (0, 0)

    def show(self, words: Sequence[str], counts: Mapping[tuple[str, str], int]) -> None:
        """Show how often each of ``words`` (rows) became each other (columns); the cursor moves to the largest change."""
        self._words, self._counts = tuple(words), counts
        changes = {cell: n for cell, n in counts.items() if cell[0] != cell[1] and n}
        if changes:
            was, now = max(changes, key=lambda cell: changes[cell])
            self._place = (self._words.index(was), self._words.index(now))
        else:
            self._place = (len(words), len(words))
        self.refresh(layout=True)
        self.call_after_refresh(self._into_view)

    def count(self, was: str | None, now: str | None) -> int:
        """Return the count of a cell; None stands for all labels."""
        return sum(n for (row, column), n in self._counts.items() if was in (None, row) and now in (None, column))

    def _widths(self) -> tuple[int, int]:
        names = [sanitize(word, limit=_WIDEST) for word in (*self._words, ALL)]
        label = max(max(map(cell_len, names)), 10)
        return min(label, _WIDEST), min(_WIDEST, max(6, *(cell_len(name) for name in names)))

    def get_content_width(self, container: Size, viewport: Size) -> int:
        label, column_width = self._widths()
        return label + (len(self._words) + 1) * (column_width + 1)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._words) + 2

    def render(self) -> Text:
        label, column_width = self._widths()
        text, dim = Text(no_wrap=True), self._parsed(DIM)
        text.append(set_cell_size("from \\ to", label), dim)
        for word in (*self._words, ALL):
            text.append(" " + _right(sanitize(word, limit=column_width), column_width), dim)
        for i, was in enumerate((*self._words, None)):
            text.append("\n" + set_cell_size(sanitize(was or ALL, limit=label), label), dim)
            for j, now in enumerate((*self._words, None)):
                count = self.count(was, now)
                text.append(" ")
                text.append(_right(str(count) if count else "·", column_width), self._style(i, j, count))
        return text

    def _style(self, i: int, j: int, count: int) -> Style:
        last = len(self._words)
        colour = "" if i == j else "bold"
        style = self._parsed(DIM if not count or last in (i, j) else colour)
        return style + _CURSOR if self.has_focus and self._place == (i, j) else style

    def _parsed(self, style: str) -> Style:
        return self.app.stylesheet.parse_style(style).rich_style

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def action_move(self, direction: str) -> None:
        i, j = self._place
        di, dj = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}[direction]
        last = len(self._words)
        self._place = (max(0, min(i + di, last)), max(0, min(j + dj, last)))
        self.refresh()
        self._into_view()

    def _into_view(self) -> None:
        label, column_width = self._widths()
        i, j = self._place
        if isinstance(self.parent, Widget):
            # The region includes the row below and the cell to the right, so that the next move stays in view.
            cell = Region(label + j * (column_width + 1), i, 2 * (column_width + 1), 3)
            self.parent.scroll_to_region(cell, animate=False, force=True)

    def action_select(self) -> None:
        i, j = self._place
        words = (*self._words, None)
        if self._words:
            self.post_message(self.Selected(words[i], words[j], self.count(words[i], words[j])))


def _right(text: str, width: int) -> str:
    return " " * max(0, width - cell_len(text)) + set_cell_size(text, min(width, cell_len(text)))
