"""A line with the labels of one example under all conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from app.store.samples import SampleRow
from app.tui.hostile_text import literal, sanitize
from app.tui.theme import DIM, OUTCOMES

_NAME_LIMIT, _MIN_NAME = 40, 6


class _Item(NamedTuple):
    """A sibling on display: its ordinal, its name, "" if there is no room for it, and the glyph and colour of its label."""

    ordinal: int
    name: str
    glyph: str
    colour: str

    @property
    def width(self) -> int:
        return 2 + len(self.glyph) + (1 + cell_len(self.name) if self.name else 0)


class SiblingStrip(Widget):
    """The siblings of a sample, set by :meth:`show`: their labels' glyphs in colour, with the conditions if there is room.

    The sample itself stands out, and always has its condition. A click chooses a sibling.
    """

    ALLOW_SELECT = False

    class Chosen(Message):
        """A sibling was clicked."""

        def __init__(self, ordinal: int) -> None:
            self.ordinal = ordinal
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: Sequence[SampleRow] = ()
        self._current: int | None = None

    def show(self, rows: Sequence[SampleRow], current: int | None) -> None:
        """Show the siblings in ``rows``, of which ``current`` is the ordinal of the sample itself; none hide the line."""
        self._rows, self._current = rows, current
        self.display = len(rows) > 1
        self.refresh()

    def _items(self) -> list[_Item]:
        names = _names(self._rows)
        appearances = [OUTCOMES[row.outcome] for row in self._rows]
        items = [
            _Item(row.ordinal, name, appearance.glyph, appearance.colour)
            for row, name, appearance in zip(self._rows, names, appearances, strict=True)
        ]
        for limit in range(_NAME_LIMIT, _MIN_NAME - 1, -1):
            fitted = [
                item if item.ordinal == self._current else item._replace(name=_shortened(item.name, limit))
                for item in items
            ]
            if sum(item.width for item in fitted) <= self.size.width:
                return fitted
        return [item if item.ordinal == self._current else item._replace(name="") for item in items]

    def render(self) -> Content:
        parts = []
        for item in self._items():
            current = item.ordinal == self._current
            parts += [
                Content.styled(f" {item.glyph}", f"{item.colour}{' bold reverse' if current else ''}"),
                literal(f" {item.name} " if item.name else " ", "bold reverse" if current else DIM),
            ]
        return Content.assemble(*parts)

    def on_click(self, event: events.Click) -> None:
        place, end = event.get_content_offset(self), 0
        if place is None:
            return
        for item in self._items():
            end += item.width
            if place.x < end:
                self.post_message(self.Chosen(item.ordinal))
                return


def _names(rows: Sequence[SampleRow]) -> list[str]:
    """Return the conditions; one that occurs twice gets the end of the instance's id, as in "image-only wrong"."""
    conditions = [row.condition for row in rows]
    names = (
        f"{row.condition} {row.id.rpartition('/')[2]}" if conditions.count(row.condition) > 1 else row.condition
        for row in rows
    )
    return [sanitize(name[:_NAME_LIMIT]) for name in names]


def _shortened(name: str, limit: int) -> str:
    return name if len(name) <= limit else f"{name[: limit - 1]}…"
