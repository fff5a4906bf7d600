"""A table of any number of rows that creates only those on display.

It sanitizes every string in a cell, so rows may hold hostile text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

from rich.cells import cell_len
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
from textual.worker import Worker, WorkerState

from app.text.elide import elide_shared
from app.tui.commands import bindings
from app.tui.hostile_text import sanitize
from app.tui.widgets.truncate import elide_middle, fit

PAGE = 64
"""The number of rows requested at a time."""
_MAX_MEASURED = 300
"""The number of characters of a cell that are measured; more than a terminal is wide."""
_MAX_COMPARED = 600
"""The number of characters of a cell in a distinct column; an ellipsis stands for the rest."""

Cell = str | Sequence[tuple[str, str]]
"""A text, or pairs of text and style, which may name variables of the styles: ``bold $right``."""
Row = Sequence[Cell]
"""The cells of a row. If there are fewer than columns and no column is frozen, the last cell extends to the edge."""
Page = Callable[[int, int], Sequence[Row]]
"""A function of (first, count) that returns ``count`` rows from number ``first``, fewer at the end."""


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        title: The title in the header.
        width: The width in cells; 0 takes a share of the remaining cells, from ``min_width`` to ``max_width``.
        style: The style of the column, as in a cell.
        right: Aligned to the right.
        tail: The share of the width for the end of a text that is too long; 0 omits the end. For names that differ there.
        distinct: Texts that are too long lose what they share with others of their page, not what sets them apart.
        max_width: The most cells that a share may have; 0 for any number.
    """

    title: str
    width: int
    style: str = ""
    right: bool = False
    min_width: int = 8
    tail: float = 0.0
    max_width: int = 0
    distinct: bool = False


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
        self._count = 0
        self._page: Page = lambda first, count: ()
        self._keys: Sequence[Hashable] | None = None
        self._threaded = False
        self._generation = 0
        self._pages: LRUCache[int, Sequence[Row]] = LRUCache(64)
        self._fitted: LRUCache[tuple[int, int], Sequence[Row]] = LRUCache(64)
        """Pages with the distinct columns as displayed, by first row and width."""
        self._requests: dict[Worker[Any], tuple[int, int]] = {}
        """The generation and first row of each page being read in a thread."""
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
        was_empty = not self._count
        drawn_lines = (
            self._drawn() if count and (count, columns or self.columns) == (self._count, self.columns) else None
        )
        if columns is not None:
            self.columns = tuple(columns)
        self._count, self._page, self._keys, self._threaded = count, page, keys, threaded
        self._generation += 1
        self._pages.clear()
        self._fitted.clear()
        if drawn_lines is not None and not threaded:
            self._redraw(drawn_lines)
        else:
            self._strips.clear()
            self.refresh()
        if self.virtual_size.height != count + self._header or columns is not None:
            self.virtual_size = Size(self._full_width(), count + self._header)
            self._update_hint()
        if was_empty is not (not count):
            self.screen.refresh_bindings()
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
            self._post_moved()

    def _drawn(self) -> dict[int, tuple[Hashable, Row | None]]:
        """Return the rows on display, with their keys, by number."""
        top = round(self.scroll_offset.y)
        numbers = range(top, min(top + self._visible + 1, self._count))
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
        return self._count

    def key(self, row: int) -> Hashable:
        """Return a row's key; None if there is no such row."""
        if not 0 <= row < self._count:
            return None
        return row if self._keys is None else self._keys[row]

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
            read = self._pages.get(first)
            if read is None:
                if self._threaded:
                    self._request(first)
                    return None
                read = self._pages[first] = self._page(first, min(PAGE, self._count - first))
            page = self._fitted[first, self._width] = self._with_distinct_texts(read)
        return page[number - first] if number - first < len(page) else None

    def _with_distinct_texts(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return rows with the texts of the distinct columns as displayed."""
        numbers = [number for number, column in enumerate(self.columns) if column.distinct]
        if not numbers:
            return rows
        fitted, widths = [list(row) for row in rows], self._widths()
        for number in numbers:
            cells = {place: row[number] for place, row in enumerate(fitted) if number < len(row)}
            texts = {place: sanitize(cell[:_MAX_COMPARED]) for place, cell in cells.items() if isinstance(cell, str)}
            for place, text in zip(texts, elide_shared([*texts.values()], widths[number]), strict=True):
                fitted[place][number] = text
        return fitted

    def _request(self, first: int) -> None:
        if (self._generation, first) in self._requests.values():
            return
        page, count = self._page, min(PAGE, self._count - first)
        worker = self.run_worker(
            lambda: page(first, count), thread=True, group="pages", exit_on_error=False, exclusive=False
        )
        self._requests[worker] = (self._generation, first)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.worker not in self._requests or event.state not in (WorkerState.SUCCESS, WorkerState.ERROR):
            return
        event.stop()
        generation, first = self._requests.pop(event.worker)
        if generation != self._generation:
            return
        if event.state == WorkerState.SUCCESS:
            self._pages[first] = event.worker.result or ()
        else:
            self._pages[first] = ()
            show_error = getattr(self.app, "show_error", None)
            if show_error is not None:
                show_error(event.worker.error)
        self._strips.clear()
        self.refresh()

    # --- drawing ---------------------------------------------------------------------------------

    def _widths(self) -> list[int]:
        fixed_width = sum(column.width for column in self.columns) + max(0, len(self.columns) - 1) + 1
        widths = [column.width for column in self.columns]
        flexible = [number for number, column in enumerate(self.columns) if column.width == 0]
        flexible.sort(key=lambda number: self.columns[number].max_width or sys.maxsize)  # others share what these leave
        room = self._width - fixed_width
        for place, number in enumerate(flexible):
            column, share = self.columns[number], room // (len(flexible) - place)
            widths[number] = max(column.min_width, min(share, column.max_width or share))
            room -= widths[number]
        return widths

    def _full_width(self) -> int:
        return sum(self._widths()) + max(0, len(self.columns) - 1) + 1

    def on_resize(self) -> None:
        self._strips.clear()
        self.virtual_size = Size(self._full_width(), self._count + self._header)
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
        if self._count == 0:
            return self._empty_line(y - self._header, base).adjust_cell_length(width, base)
        if number >= self._count:
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
        widths, last = self._widths(), len(cells) - 1
        if self.frozen:
            cells = [*cells, *[""] * (len(widths) - len(cells))]
        elif 0 <= last < len(widths) - 1:
            line_width = max(self._width, self._full_width()) - 1
            widths[last:] = [line_width - sum(width + 1 for width in widths[:last]) - 1]
        for column, width, cell in zip(self.columns, widths, cells, strict=False):
            style = base + self._parsed(column.style)
            parts = [(cell, "")] if isinstance(cell, str) else list(cell)
            segments += fit(
                [(_visible_text(text, column, width), style + self._parsed(own_style)) for text, own_style in parts],
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
        """Return the visible part of a line: the frozen columns, and the others from the scroll offset on.

        Beside frozen columns, a column that the right edge would cut is left out, as part of a number is another number.
        """
        offset = self.scroll_offset.x
        if not self.frozen:
            return line.crop_extend(offset, offset + width, base)
        widths = self._widths()
        frozen = 1 + sum(column_width + 1 for column_width in widths[: self.frozen])
        ends = [frozen + end for end in accumulate(column_width + 1 for column_width in widths[self.frozen :])]
        whole = [end for end in ends if offset + frozen < end <= offset + width + 1]
        scrolled = line.crop(frozen + offset, max(whole, default=offset + width))
        return Strip.join([line.crop(0, frozen), scrolled]).adjust_cell_length(width, base)

    # --- moving ----------------------------------------------------------------------------------

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, self._count - 1))

    def watch_cursor(self, before: int, now: int) -> None:
        for row in (before, now):
            self.refresh_line(row + self._header)
        self._into_view()
        self._post_moved()

    def _post_moved(self) -> None:
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
        self.scroll_to(x=max((x for x in self._starts() if x < self.scroll_offset.x), default=0), animate=False)

    def action_right(self) -> None:
        x = min((x for x in self._starts() if x > self.scroll_offset.x), default=self.scroll_offset.x)
        self.scroll_to(x=x, animate=False)

    def _starts(self) -> list[int]:
        """Return the scroll offsets at which a titled column comes right after the frozen ones."""
        starts: list[int] = []
        start = 0
        for column, width in list(zip(self.columns, self._widths(), strict=True))[self.frozen :]:
            if column.title or not starts:
                starts.append(start)
            start += width + 1
        return starts

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
        starts, frozen_width = self._starts(), sum(width + 1 for width in self._widths()[: self.frozen])
        ends = [*starts[1:], self._full_width() - frozen_width]
        first = self.scroll_offset.x
        left = sum(start < first for start in starts)
        right = sum(end > first + self._width - frozen_width for end in ends)
        hints = [f"← {left} more"] * bool(left) + [f"{right} more →"] * bool(right)
        room = self.size.width - 4 - sum(len(hint) + 2 for hint in hints)
        subtitle = self._subtitle.truncate(max(0, room), ellipsis=True)
        self.border_subtitle = Content("  ").join([part for part in (subtitle, *map(Content, hints)) if part])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._count > 0 if action == "select" else True

    def action_select(self) -> None:
        if self._count:
            self.post_message(self.Selected(self, self.cursor, self.cursor_key))

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is None:
            return  # on the frame
        if place.y < self._header:
            column = self._column_at(place.x)
            if column is not None:
                self.post_message(self.HeaderClicked(self, column))
            return
        row = place.y - self._header + self.scroll_offset.y
        if row >= self._count:
            return
        if row == self.cursor:
            self.action_select()
        else:
            self.cursor = row

    def _column_at(self, x: int) -> int | None:
        """Return the number of the column that is displayed at ``x``; None beyond the last."""
        start = 1
        for number, width in enumerate(self._widths()):
            if number == self.frozen and x >= start:
                x += self.scroll_offset.x
            if x <= start + width:
                return number
            start += width + 1
        return None


def fit_to_contents(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[Column, ...]:
    """Return ``columns``, those of width 0 with a ``max_width`` for the widest of their cells and a gap.

    Cells that extend over several columns do not count.
    """

    def widest(number: int) -> int:
        cells = [row[number] for row in rows if number < len(row) - 1 or len(row) == len(columns)]
        return max([cell_len(columns[number].title), *map(_cell_width, cells)])

    return tuple(
        column if column.width else column._replace(max_width=widest(number) + 1)
        for number, column in enumerate(columns)
    )


def _cell_width(cell: Cell) -> int:
    texts = [cell] if isinstance(cell, str) else [text for text, _ in cell]
    return sum(cell_len(sanitize(text, limit=_MAX_MEASURED)) for text in texts)


def trailing_style(line: Strip, base: Style) -> Style:
    """Return the style in which a line continues past its end."""
    segments = list(line)
    return (segments[-1].style or base) if segments else base


def _visible_text(text: str, column: Column, width: int) -> str:
    """Return a cell's text, sanitized, shortened to what can be visible in ``width`` cells."""
    limit = 4 * width
    return sanitize(elide_middle(text, limit)) if column.tail else sanitize(text, limit=limit)
