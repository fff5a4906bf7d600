"""The labels of one example under all conditions, in one or two lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from app.store.sample_lists import SampleRow
from app.tui.hostile_text import literal, sanitize
from app.tui.theme import DIM, OUTCOMES

_NAME_LIMIT, _MIN_NAME = 40, 4
_MAX_LINES = 2
_SHORT_WORDS = {"image": "img", "text": "txt", "correct": "cor", "wrong": "wr"}
"""Abbreviations of words in names of conditions, as the papers' tables have them."""


class _Item(NamedTuple):
    """The siblings under one condition, and its name, "" if there is no room for it."""

    rows: Sequence[SampleRow]
    name: str

    @property
    def width(self) -> int:
        return 1 + len(self.rows) + (1 + cell_len(self.name) if self.name else 0) + 1


_Lines = list[list[_Item]]


class SiblingStrip(Widget):
    """The siblings of a sample, set by :meth:`show`: their labels' glyphs in colour, and their conditions.

    Names are shortened as far as it takes to fit all of them. The sample itself stands out. A click chooses a sibling.
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
        """Show the siblings in ``rows``, of which ``current`` is the ordinal of the sample itself; none hide the strip."""
        is_new = rows != self._rows
        self._rows, self._current = rows, current
        self.display = len(rows) > 1
        self.refresh(layout=is_new)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(_fitted(self._rows, self._current, width))

    def render(self) -> Content:
        lines = []
        for line in _fitted(self._rows, self._current, self.size.width):
            parts = []
            for item in line:
                parts.append(Content(" "))
                for row in item.rows:
                    appearance, is_current = OUTCOMES[row.outcome], row.ordinal == self._current
                    parts.append(Content.styled(appearance.glyph, f"{appearance.colour}{_highlight(is_current)}"))
                is_current = any(row.ordinal == self._current for row in item.rows)
                if item.name:
                    parts.append(literal(f" {item.name}", _highlight(is_current).strip() or DIM))
                parts.append(Content(" "))
            lines.append(Content.assemble(*parts))
        return Content("\n").join(lines)

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is None:
            return
        lines = _fitted(self._rows, self._current, self.size.width)
        start = 0
        for item in lines[place.y] if place.y < len(lines) else ():
            if place.x < start + item.width:
                number = min(max(0, place.x - start - 1), len(item.rows) - 1)
                in_name = place.x > start + len(item.rows)
                self.post_message(self.Chosen(item.rows[0 if in_name else number].ordinal))
                return
            start += item.width


def sibling_names(rows: Sequence[SampleRow]) -> list[str]:
    """Return the conditions; one that occurs twice gets the end of the instance's id, as in "image-only wrong"."""
    conditions = [row.condition for row in rows]
    return [
        f"{row.condition} {row.id.rpartition('/')[2]}" if conditions.count(row.condition) > 1 else row.condition
        for row in rows
    ]


def _highlight(is_current: bool) -> str:
    return " bold reverse" if is_current else ""


def _fitted(rows: Sequence[SampleRow], current: int | None, width: int) -> _Lines:
    """Return the items in lines: with their names in full or with shorter words, in one line or else two, if they fit.

    Otherwise names are cut, and if there is no room for that, only the current one is left.
    """
    items = [
        _Item(group, sanitize(condition, limit=_NAME_LIMIT))
        for condition, group in ((name, list(group)) for name, group in groupby(rows, key=lambda row: row.condition))
    ]
    for lines in _attempts(items, current, width):
        if len(lines) <= _MAX_LINES and all(sum(item.width for item in line) <= width for line in lines):
            return lines
    return _wrapped([item._replace(name=item.name if _is_current(item, current) else "") for item in items], width)


def _attempts(items: Sequence[_Item], current: int | None, width: int) -> Iterator[_Lines]:
    """Yield the arrangements from the best one on."""
    short = [item._replace(name=_short(item.name)) for item in items]
    for arranged in (items, short):
        if sum(item.width for item in arranged) <= width:
            yield [list(arranged)]
    yield _wrapped(items, width)
    for limit in range(_NAME_LIMIT, _MIN_NAME - 1, -1):
        yield _wrapped(
            [
                item if _is_current(item, current) else item._replace(name=_cut(cut_item.name, limit))
                for item, cut_item in zip(items, short, strict=True)
            ],
            width,
        )


def _wrapped(items: Sequence[_Item], width: int) -> _Lines:
    """Return the items in as many lines as they need."""
    lines: _Lines = [[]]
    for item in items:
        if lines[-1] and sum(other.width for other in lines[-1]) + item.width > width:
            lines.append([])
        lines[-1].append(item)
    return lines


def _is_current(item: _Item, current: int | None) -> bool:
    return any(row.ordinal == current for row in item.rows)


def _short(name: str) -> str:
    return "-".join(_SHORT_WORDS.get(word, word) for word in name.split("-"))


def _cut(name: str, limit: int) -> str:
    return name if len(name) <= limit else f"{name[: limit - 1]}…"
