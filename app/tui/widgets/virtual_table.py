"""A table of any number of rows that creates only those on display.

It sanitizes every string in a cell, so rows may hold hostile text.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.cache import LRUCache
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.worker import Worker

from app.tui.key_commands import bindings
from app.tui.widgets.row_pages import PAGE, Page, RowPages
from app.tui.widgets.table_columns import Cell, Column, ColumnLayout, Row, distinct_texts, visible_text
from app.tui.widgets.truncate_text import fit, trailing_style


class _TableMessage(Message):
    """A message of a table."""

    def __init__(self, table: VirtualTable) -> None:
        self.table = table
        super().__init__()

    @property
    def control(self) -> VirtualTable:
        return self.table


class _RowMessage(_TableMessage):
    """A message about a row."""

    def __init__(self, table: VirtualTable, row: int, key: Hashable) -> None:
        super().__init__(table)
        self.row, self.key = row, key


class VirtualTable(ScrollView, can_focus=True):
    """A table with a cursor, marks, keys (arrows, j k g G, PgUp PgDn, Enter) and the mouse; its rows are set by :meth:`show`.

    The first ``frozen`` columns stay in place when the others scroll sideways.
    """

    name_ = "table"
    BINDINGS: ClassVar = bindings("table")
    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--header", "table--cursor", "table--mark"}
    cursor: reactive[int] = reactive(0, repaint=False, always_update=False)
    """The row under the cursor."""

    class Selected(_RowMessage):
        """A row was opened, by Enter or by a click on the row under the cursor."""

    class Moved(_RowMessage):
        """The cursor moved to another row, or the row under it was replaced."""

    class HeaderClicked(_TableMessage):
        """The title of a column was clicked; ``column`` is the column's number."""

        def __init__(self, table: VirtualTable, column: int) -> None:
            super().__init__(table)
            self.column = column

    def __init__(
        self,
        columns: Sequence[Column] = (),
        *,
        frozen: int = 0,
        header: bool = True,
        empty: str | Sequence[Cell] = "nothing here",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.columns = tuple(columns)
        self.frozen = frozen
        self.empty = empty
        """The line or the lines displayed if there are no rows; must be ours."""
        self._subtitle = Content("")
        self.marks: set[Hashable] = set()
        """The keys of the marked rows; call :meth:`refresh` after a change."""
        self._header = 1 if header else 0
        self._pages = RowPages(self)
        self._fitted: LRUCache[tuple[int, int], Sequence[Row]] = LRUCache(64)
        """Pages with the distinct columns as displayed, by first row and width."""
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
        """Show ``count`` rows returned by ``page``.

        Args:
            count: The number of rows.
            page: Returns the rows; must be quick unless ``threaded``.
            keys: The rows' keys (default: their numbers). The cursor stays at its key, or its position if the key is gone.
            threaded: Call ``page`` in a thread; rows are displayed as dots until it returns.
            columns: New columns; None keeps them.
        """
        before = self.cursor_key
        was_empty = not self._pages.count
        drawn_lines = (
            self._drawn() if count and (count, columns or self.columns) == (self._pages.count, self.columns) else None
        )
        if columns is not None:
            self.columns = tuple(columns)
        self._pages.replace(count, page, keys, threaded=threaded)
        self._fitted.clear()
        if drawn_lines is not None and not threaded:
            self._redraw(drawn_lines)
        else:
            self._strips.clear()
            self.refresh()
        if self.virtual_size.height != count + self._header or columns is not None:
            self.virtual_size = Size(self._column_layout.full_width, count + self._header)
            self._update_hint()
        if was_empty is not (not count):
            self.screen.refresh_bindings()
        place = self.cursor
        if keys is not None and before is not None:
            with suppress(ValueError):
                place = keys.index(before)
        place = max(0, min(place, count - 1))
        if place != self.cursor:
            self.cursor = place
        elif self.cursor_key != before:
            self._post_moved()

    def _drawn(self) -> dict[int, tuple[Hashable, Row | None]]:
        """Return the rows on display, with their keys, by number."""
        top = round(self.scroll_offset.y)
        numbers = range(top, min(top + self._visible + 1, self._pages.count))
        rows: dict[int, tuple[Hashable, Row | None]] = {}
        for number in numbers:
            page = self._fitted.get((number // PAGE * PAGE, self._width))
            place = number % PAGE
            rows[number] = (self.key(number), page[place] if page and place < len(page) else None)
        return rows

    def _redraw(self, drawn: Mapping[int, tuple[Hashable, Row | None]]) -> None:
        """Redraw the rows that have changed since they were ``drawn``."""
        width = self._width
        unchanged = {n: self._strips.get((n, width)) for n, row in drawn.items() if row == (self.key(n), self._row(n))}
        self._strips.clear()
        for number in drawn:
            strip = unchanged.get(number)
            if strip is None:
                self.refresh_line(number + self._header)
            else:
                self._strips[number, width] = strip

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self._pages.count

    def key(self, row: int) -> Hashable:
        """Return a row's key; None if there is no such row."""
        return self._pages.key(row)

    @property
    def cursor_key(self) -> Hashable:
        """The key of the row under the cursor; None if there are no rows."""
        return self.key(self.cursor)

    def toggle_mark(self) -> None:
        """Mark or unmark the row under the cursor."""
        if self.cursor_key is not None:
            self.mark(self.marks ^ {self.cursor_key})

    def mark(self, keys: set[Hashable]) -> None:
        """Mark the rows with these keys and no others."""
        self.marks = keys
        self._strips.clear()
        self.refresh()

    def _row(self, number: int) -> Row | None:
        first = number // PAGE * PAGE
        page = self._fitted.get((first, self._width))
        if page is None:
            if (read := self._pages.page(first)) is None:
                return None
            page = self._fitted[first, self._width] = distinct_texts(self.columns, self._column_layout.widths, read)
        return page[number - first] if number - first < len(page) else None

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if self._pages.take(event):
            self._strips.clear()
            self.refresh()

    # --- drawing ---------------------------------------------------------------------------------

    @property
    def _column_layout(self) -> ColumnLayout:
        return ColumnLayout(self.columns, self.frozen, self._width)

    def on_resize(self) -> None:
        self._strips.clear()
        self.virtual_size = Size(self._column_layout.full_width, self._pages.count + self._header)
        self._into_view()
        self._update_hint()

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
        if self._pages.count == 0:
            return self._empty_line(y - self._header, base).adjust_cell_length(width, base)
        if number >= self._pages.count:
            return Strip.blank(width, base)
        strip = self._strips.get((number, width))
        if strip is None:
            row = self._row(number)
            mark = "▌" if self.key(number) in self.marks else " "
            strip = self._line(mark, ["…"] * len(self.columns) if row is None else row, base)
            if row is not None:
                self._strips[number, width] = strip
        if number == self.cursor:
            strip = Strip(Segment.apply_style(strip, None, self._component("table--cursor")))
        return self._across(strip, width, trailing_style(strip, base))

    def _empty_line(self, number: int, base: Style) -> Strip:
        lines = [self.empty] if isinstance(self.empty, str) else self.empty
        line = lines[number] if number < len(lines) else ""
        parts = [(line, "")] if isinstance(line, str) else line
        style = base + self._component("table--header")
        return Strip([Segment(" ", base), *(Segment(text, style + self._parsed(own)) for text, own in parts)])

    def _component(self, name: str) -> Style:
        return self.get_component_rich_style(name, partial=True)

    def _line(self, mark: str, cells: Row, base: Style) -> Strip:
        """Return a full line: a cell for the mark, then the columns, separated by a space."""
        segments = [Segment(mark, base + self._component("table--mark") if mark.strip() else base)]
        layout, last = self._column_layout, len(cells) - 1
        widths = layout.widths
        if self.frozen:
            cells = [*cells, *[""] * (len(widths) - len(cells))]
        elif 0 <= last < len(widths) - 1:
            line_width = max(self._width, layout.full_width) - 1
            widths[last:] = [line_width - sum(width + 1 for width in widths[:last]) - 1]
        for column, width, cell in zip(self.columns, widths, cells, strict=False):
            style = base + self._parsed(column.style)
            parts = [(cell, "")] if isinstance(cell, str) else list(cell)
            segments += fit(
                [(visible_text(text, column, width), style + self._parsed(own_style)) for text, own_style in parts],
                width,
                column.right,
                style,
                column.tail,
            )
            segments.append(Segment(" ", base))
        return Strip(segments)

    def _parsed(self, style: str) -> Style:
        parsed = self._styles.get(style)
        if parsed is None:
            parsed = self._styles[style] = self.app.stylesheet.parse_style(style).rich_style if style else Style.null()
        return parsed

    def _across(self, line: Strip, width: int, base: Style) -> Strip:
        """Return the visible part of a line: the frozen columns, and the others from the scroll offset on."""
        offset = self.scroll_offset.x
        if self.frozen:
            return self._column_layout.crop(line, offset).adjust_cell_length(width, base)
        return line.crop_extend(offset, offset + width, base)

    # --- moving ----------------------------------------------------------------------------------

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, self._pages.count - 1))

    def watch_cursor(self, before: int, now: int) -> None:
        for row in (before, now):
            self.refresh_line(row + self._header)
        self._into_view()
        self._post_moved()

    def _post_moved(self) -> None:
        if self._pages.count:
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
        self.cursor = self._pages.count - 1

    def action_left(self) -> None:
        self.scroll_to(
            x=max((x for x in self._column_layout.starts if x < self.scroll_offset.x), default=0), animate=False
        )

    def action_right(self) -> None:
        x = min((x for x in self._column_layout.starts if x > self.scroll_offset.x), default=self.scroll_offset.x)
        self.scroll_to(x=x, animate=False)

    def watch_scroll_x(self, before: float, now: float) -> None:
        super().watch_scroll_x(before, now)
        self._update_hint()

    def set_subtitle(self, subtitle: Content) -> None:
        """Set the text of the lower border, which precedes the number of columns that are out of view."""
        if subtitle != self._subtitle:
            self._subtitle = subtitle
            self._update_hint()

    def _update_hint(self) -> None:
        """Display the subtitle in the lower border, and how many columns are beyond the left and right edges."""
        if not self.frozen:
            self.border_subtitle = self._subtitle
            return
        left, right = self._column_layout.hidden(self.scroll_offset.x)
        hints = [f"← {left} more"] * bool(left) + [f"{right} more →"] * bool(right)
        room = self.size.width - 4 - sum(len(hint) + 2 for hint in hints)
        subtitle = self._subtitle.truncate(max(0, room), ellipsis=True)
        self.border_subtitle = Content("  ").join([part for part in (subtitle, *map(Content, hints)) if part])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._pages.count > 0 if action == "select" else True

    def action_select(self) -> None:
        if self._pages.count:
            self.post_message(self.Selected(self, self.cursor, self.cursor_key))

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is None:
            return  # on the frame
        if place.y < self._header:
            column = self._column_layout.column_at(place.x, self.scroll_offset.x)
            if column is not None:
                self.post_message(self.HeaderClicked(self, column))
            return
        row = place.y - self._header + self.scroll_offset.y
        if row >= self._pages.count:
            return
        if row == self.cursor:
            self.action_select()
        else:
            self.cursor = row
