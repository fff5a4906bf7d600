"""VirtualTable: a table of any number of rows, of which only those on the screen are ever made.

Every string in a cell is made harmless here, so rows may hold hostile text as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.worker import Worker, WorkerState

from app.tui.commands import bindings
from app.tui.hostile_text import harmless
from app.tui.widgets.truncate import ends, fitted

PAGE = 64
"""Rows that are asked for at once."""

Cell = str | Sequence[tuple[str, str]]
"""A text, or parts of (text, style), the style as Rich writes it: ``bold #56b4e9``."""
Row = Sequence[Cell]
Page = Callable[[int, int], Sequence[Row]]
"""``page(first, count)``: the rows from number ``first``, ``count`` of them or fewer at the end."""


class Column(NamedTuple):
    """A column: its title and width in cells; width 0 takes what is left, at least ``least``.

    ``end`` is how much of the room is its end's where a text is too long: 0 leaves the end out, more the middle, as of names
    that differ at the end.
    """

    title: str
    width: int
    style: str = ""
    right: bool = False
    least: int = 8
    end: float = 0.0


class VirtualTable(ScrollView, can_focus=True):
    """Rows by page, with a cursor, keys (arrows, j k g G, PgUp PgDn, Enter), the mouse, and marks.

    ``frozen`` columns stay where they are when the others scroll sideways. Give it rows by :meth:`show`.
    """

    name_ = "table"
    BINDINGS: ClassVar = bindings("table")
    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--header", "table--cursor", "table--mark"}
    DEFAULT_CSS = """
    VirtualTable {
        height: 1fr; width: 1fr; background: $background; overflow-x: auto; overflow-y: scroll; scrollbar-size: 1 1;
    }
    VirtualTable > .table--header { color: #909090; text-style: bold; }
    VirtualTable > .table--cursor { background: #3a3a3a; text-style: bold; }
    VirtualTable:focus > .table--cursor { background: #28506b; text-style: bold; }
    VirtualTable > .table--mark { color: $accent; text-style: bold; }
    """

    cursor: reactive[int] = reactive(0, repaint=False, always_update=False)
    """The row under the cursor."""

    class Selected(Message):
        """A row was opened: by Enter, or by a click on the row under the cursor."""

        def __init__(self, table: VirtualTable, row: int, key: Hashable) -> None:
            self.table, self.row, self.key = table, row, key
            super().__init__()

        @property
        def control(self) -> VirtualTable:
            return self.table

    class Moved(Message):
        """The cursor is at another row, or the row under it is another one."""

        def __init__(self, table: VirtualTable, row: int, key: Hashable) -> None:
            self.table, self.row, self.key = table, row, key
            super().__init__()

        @property
        def control(self) -> VirtualTable:
            return self.table

    def __init__(
        self,
        columns: Sequence[Column] = (),
        *,
        frozen: int = 0,
        header: bool = True,
        empty: str = "nothing here",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.columns = tuple(columns)
        self.frozen = frozen
        self.empty = empty
        """What stands in the place of the rows where there are none; ours."""
        self.marks: set[Hashable] = set()
        """The keys of the marked rows; call :meth:`refresh` after changing it."""
        self._header = 1 if header else 0
        self._count = 0
        self._page: Page = lambda first, count: ()
        self._keys: Sequence[Hashable] | None = None
        self._threaded = False
        self._generation = 0
        self._pages: LRUCache[int, Sequence[Row]] = LRUCache(64)
        self._asked: dict[Worker[Any], tuple[int, int]] = {}
        self._strips: LRUCache[tuple[int, int], Strip] = LRUCache(512)
        self._styles: dict[str, Style] = {}

    # --- rows ------------------------------------------------------------------------------------

    def show(
        self,
        count: int,
        page: Page,
        *,
        keys: Sequence[Hashable] | None = None,
        threaded: bool = False,
        columns: Sequence[Column] | None = None,
    ) -> None:
        """Show ``count`` rows that ``page`` gives.

        ``keys`` are what the rows are known by (default: their numbers): the cursor stays with its key when rows are shown
        anew, or at its place where that key is gone. With ``threaded``, ``page`` is called in a thread, and a row that has not
        come yet is dots; else it must be quick.
        """
        before = self.cursor_key
        drawn = self._drawn() if count and (count, columns or self.columns) == (self._count, self.columns) else None
        if columns is not None:
            self.columns = tuple(columns)
        self._count, self._page, self._keys, self._threaded = count, page, keys, threaded
        self._generation += 1
        self._pages.clear()
        if drawn is not None and not threaded:
            self._redraw(drawn)
        else:
            self._strips.clear()
            self.refresh()
        if self.virtual_size.height != count + self._header or columns is not None:
            self.virtual_size = Size(self._full_width(), count + self._header)
        place = self.cursor
        if keys is not None and before is not None:
            try:
                place = keys.index(before)
            except ValueError:
                place = self.cursor
        place = max(0, min(place, count - 1))
        if place != self.cursor:
            self.cursor = place
        elif self.cursor_key != before:
            self._tell_moved()

    def _drawn(self) -> dict[int, tuple[Hashable, Row | None]]:
        """The rows that are on the screen, by number."""
        top = round(self.scroll_offset.y)
        numbers = range(top, min(top + self._visible + 1, self._count))
        found: dict[int, tuple[Hashable, Row | None]] = {}
        for number in numbers:
            page = self._pages.get(number // PAGE * PAGE)
            place = number % PAGE
            found[number] = (self.key(number), page[place] if page and place < len(page) else None)
        return found

    def _redraw(self, drawn: Mapping[int, tuple[Hashable, Row | None]]) -> None:
        """Draw those rows again that are no longer as they were drawn."""
        width = self._width
        kept = {n: self._strips.get((n, width)) for n, was in drawn.items() if was == (self.key(n), self._row(n))}
        self._strips.clear()
        for number in drawn:
            strip = kept.get(number)
            if strip is None:
                self.refresh_line(number + self._header)
            else:
                self._strips[number, width] = strip

    @property
    def row_count(self) -> int:
        return self._count

    def key(self, row: int) -> Hashable:
        """What a row is known by; None where there is no such row."""
        if not 0 <= row < self._count:
            return None
        return row if self._keys is None else self._keys[row]

    @property
    def cursor_key(self) -> Hashable:
        """The key of the row under the cursor; None where there are no rows."""
        return self.key(self.cursor)

    def toggle_mark(self) -> None:
        """Mark the row under the cursor, or take its mark away, and go on to the next."""
        if self.cursor_key is not None:
            self.marks ^= {self.cursor_key}
            self._strips.clear()
            self.refresh()
            self.action_down()

    def _row(self, number: int) -> Row | None:
        first = number // PAGE * PAGE
        page = self._pages.get(first)
        if page is None:
            if self._threaded:
                self._ask(first)
                return None
            page = self._page(first, min(PAGE, self._count - first))
            self._pages[first] = page
        return page[number - first] if number - first < len(page) else None

    def _ask(self, first: int) -> None:
        if (self._generation, first) in self._asked.values():
            return
        page, count = self._page, min(PAGE, self._count - first)
        worker = self.run_worker(
            lambda: page(first, count), thread=True, group="pages", exit_on_error=False, exclusive=False
        )
        self._asked[worker] = (self._generation, first)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.worker not in self._asked or event.state not in (WorkerState.SUCCESS, WorkerState.ERROR):
            return
        event.stop()
        generation, first = self._asked.pop(event.worker)
        if generation != self._generation:
            return
        if event.state == WorkerState.SUCCESS:
            self._pages[first] = event.worker.result or ()
        else:
            self._pages[first] = ()
            failed = getattr(self.app, "failed", None)
            if failed is not None:
                failed(event.worker.error)
        self._strips.clear()
        self.refresh()

    # --- drawing ---------------------------------------------------------------------------------

    def _widths(self) -> list[int]:
        fixed = sum(column.width for column in self.columns) + max(0, len(self.columns) - 1) + 1
        free = [column for column in self.columns if column.width == 0]
        left = self._width - fixed
        share = left // len(free) if free else 0
        return [column.width or max(column.least, share) for column in self.columns]

    def _full_width(self) -> int:
        return sum(self._widths()) + max(0, len(self.columns) - 1) + 1

    def on_resize(self) -> None:
        self._strips.clear()
        self.virtual_size = Size(self._full_width(), self._count + self._header)
        self._into_view()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._styles.clear()

    def render_line(self, y: int) -> Strip:
        width = self._width
        base = self.rich_style
        if y < self._header:
            titles = [column.title for column in self.columns]
            return self._across(self._line(" ", titles, base + self._component("table--header")), width, base)
        number = y - self._header + self.scroll_offset.y
        if self._count == 0:
            text = f" {self.empty}" if y == self._header else ""
            return Strip([Segment(text, base + self._component("table--header"))]).adjust_cell_length(width, base)
        if number >= self._count:
            return Strip.blank(width, base)
        known = self._strips.get((number, width))
        if known is None:
            row = self._row(number)
            marked = "▌" if self.key(number) in self.marks else " "
            known = self._line(marked, ["…"] * len(self.columns) if row is None else row, base)
            if row is not None:
                self._strips[number, width] = known
        if number == self.cursor:
            known = Strip(Segment.apply_style(known, None, self._component("table--cursor")))
        return self._across(known, width, known_style(known, base))

    def _component(self, name: str) -> Style:
        return self.get_component_rich_style(name, partial=True)

    def _line(self, mark: str, cells: Row, base: Style) -> Strip:
        """A whole line: a cell for the mark, then the columns with a space between."""
        segments = [Segment(mark, base + self._component("table--mark") if mark.strip() else base)]
        widths = self._widths()
        for number, (column, width) in enumerate(zip(self.columns, widths, strict=True)):
            style = base + self._parsed(column.style)
            cell: Cell = cells[number] if number < len(cells) else ""
            parts = [(cell, "")] if isinstance(cell, str) else list(cell)
            segments += fitted(
                [(_shown(text, column, width), style + self._parsed(own)) for text, own in parts],
                width,
                column.right,
                style,
                column.end,
            )
            segments.append(Segment(" ", base))
        return Strip(segments)

    def _parsed(self, style: str) -> Style:
        found = self._styles.get(style)
        if found is None:
            found = self._styles[style] = Style.parse(style)
        return found

    def _across(self, line: Strip, width: int, base: Style) -> Strip:
        """What of a line is seen: the frozen columns, and the others from where they are scrolled to."""
        across = self.scroll_offset.x
        if not across:
            return line.crop_extend(0, width, base)
        frozen = 1 + sum(one + 1 for one in self._widths()[: self.frozen]) if self.frozen else 0
        kept = line.crop(0, frozen)
        return Strip.join([kept, line.crop(frozen + across, across + width)]).adjust_cell_length(width, base)

    # --- moving ----------------------------------------------------------------------------------

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, self._count - 1))

    def watch_cursor(self, before: int, now: int) -> None:
        for row in (before, now):
            self.refresh_line(row + self._header)
        self._into_view()
        self._tell_moved()

    def _tell_moved(self) -> None:
        if self._count:
            self.post_message(self.Moved(self, self.cursor, self.cursor_key))

    def _into_view(self) -> None:
        visible = self._visible
        top = round(self.scroll_offset.y)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + visible:
            self.scroll_to(y=self.cursor - visible + 1, animate=False)

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    @property
    def _visible(self) -> int:
        return max(1, self.scrollable_content_region.height - self._header)

    def action_down(self) -> None:
        self.cursor += 1

    def action_up(self) -> None:
        self.cursor -= 1

    def action_page_down(self) -> None:
        self.cursor += self._visible

    def action_page_up(self) -> None:
        self.cursor -= self._visible

    def action_top(self) -> None:
        self.cursor = 0

    def action_bottom(self) -> None:
        self.cursor = self._count - 1

    def action_left(self) -> None:
        self.scroll_to(x=self.scroll_offset.x - 8, animate=False)

    def action_right(self) -> None:
        self.scroll_to(x=self.scroll_offset.x + 8, animate=False)

    def action_select(self) -> None:
        if self._count:
            self.post_message(self.Selected(self, self.cursor, self.cursor_key))

    def on_click(self, event: events.Click) -> None:
        row = event.y - self._header + self.scroll_offset.y
        if event.y < self._header or row >= self._count:
            return
        if row == self.cursor:
            self.action_select()
        else:
            self.cursor = row


def known_style(line: Strip, base: Style) -> Style:
    """The style a line goes on in behind its end."""
    segments = list(line)
    return (segments[-1].style or base) if segments else base


def _shown(text: str, column: Column, width: int) -> str:
    """As much of a cell's text as can be seen in ``width`` cells, made harmless."""
    most = 4 * width
    return harmless(ends(text, most)) if column.end else harmless(text, limit=most)
