"""A table of a benchmark or a comparison, with its notes underneath."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.report.tables.table_rendering import missing_value_notes, short_interval, short_value
from app.text.text_escaping import clean
from app.tui.hostile_text import literal
from app.tui.theme import DIM, HEADING
from app.tui.widgets.table_columns import Cell as ScreenCell
from app.tui.widgets.table_columns import Column
from app.tui.widgets.titled_panel import panel, set_panel_title
from app.tui.widgets.virtual_table import VirtualTable
from benchmarks.vocabulary import Cell, Estimate, Table

PAPER_SUFFIX = " (paper)"
_MAX_WIDTH = 44
_MAX_LABEL_WIDTH = 34
_MIN_WIDTH = 5


class ResultTable(Vertical):
    """A table with its notes, set by :meth:`show`; the first column stays in place when the others scroll sideways.

    Confidence intervals are shown if the table fits with them, until :meth:`toggle_intervals` chooses. The notes are folded
    to one line until :meth:`toggle_notes` unfolds them.
    """

    def __init__(self, *, empty: str = "computing …", id: str | None = None) -> None:
        super().__init__(id=id)
        self._empty = empty
        self._folded = True
        self._state = Content("")
        self._position = ""
        self._intervals: bool | None = None
        """True to show intervals, False to hide them; None to show them if the table fits with them."""
        self.has_intervals = False
        """True if cells of the table on display have intervals."""
        self.intervals_displayed = False
        self.table: Table | None = None
        """The table on display; None if a message is."""

    def compose(self) -> ComposeResult:
        yield Static(classes="message -empty")
        yield panel(VirtualTable((Column("", 0),), frozen=1, empty=self._empty))
        with VerticalScroll(classes="notes", can_focus=False):
            yield Static()

    @property
    def rows(self) -> VirtualTable:
        """The widget with the rows, for cursor and focus."""
        return self.query_one(VirtualTable)

    def show(self, table: Table, *, position: str = "") -> None:
        """Show ``table``; ``position``, which must be ours, follows its title.

        The paper's rows come last, below a rule.
        """
        self.table, self._position = table, position
        self.query_one(".message").add_class("-empty")
        set_panel_title(self.rows, Content.assemble(literal(table.title), (f"  {position}" if position else "", DIM)))
        self._show_rows(table)
        self._show_notes()

    def _show_rows(self, table: Table) -> None:
        room = self.rows.scrollable_content_region.width
        with_intervals = _layout(table, room, intervals=True)
        self.has_intervals = any(shape.interval_width for shape in with_intervals.shapes)
        if self._intervals is None:
            self.intervals_displayed = self.has_intervals and (with_intervals.width <= room or not room)
        else:
            self.intervals_displayed = self.has_intervals and self._intervals
        layout = with_intervals if self.intervals_displayed else _layout(table, room, intervals=False)
        rows, keys = layout.rows, [(number, label) for number, label in enumerate(layout.labels)]
        self.rows.empty = "no rows"
        self.rows.show(len(rows), lambda first, count: rows[first : first + count], keys=keys, columns=layout.columns)
        self._show_state()
        self.screen.refresh_bindings()  # the footer names what the key for intervals does

    def on_resize(self) -> None:
        if self.table is not None and self._intervals is None:
            self._show_rows(self.table)

    def show_message(self, message: str) -> None:
        """Show a message, which may be hostile, in place of a table."""
        self.table = None
        text = self.query_one(".message", Static)
        text.update(literal(message))
        text.remove_class("-empty")
        set_panel_title(self.rows, "")
        self.rows.empty = ""
        self.rows.show(0, lambda first, count: (), columns=(Column("", 0),))
        self.query_one(".notes Static", Static).update("")

    def set_state(self, state: Content) -> None:
        """Show ``state`` in the lower border."""
        self._state = state
        self._show_state()

    def _show_state(self) -> None:
        are_hidden = self.table is not None and self.has_intervals and not self.intervals_displayed
        hint = Content.styled("i shows intervals   " if are_hidden else "", DIM)
        self.rows.set_subtitle(hint + self._state)

    def toggle_intervals(self) -> None:
        """Show or hide confidence intervals, whether or not the table fits."""
        self._intervals = not self.intervals_displayed
        if self.table is not None:
            self._show_rows(self.table)

    def toggle_notes(self) -> None:
        """Fold or unfold the notes."""
        self._folded = not self._folded
        self.query_one(".notes").can_focus = not self._folded  # to scroll them by keys
        self._show_notes()

    def _show_notes(self) -> None:
        if self.table is not None:
            lines = [literal(note) for note in (*self.table.notes, *missing_value_notes(self.table))]
            if self._folded and lines:
                count = f"{len(lines)} notes" if len(lines) > 1 else "1 note"
                lines = [Content.styled(f"N unfolds {count}: ", DIM) + lines[0]]
            self.query_one(".notes Static", Static).update(Content("\n").join(lines))
        self.set_class(self._folded, "-folded")


class _Layout(NamedTuple):
    """The columns of a table on screen, its rows, and their labels."""

    shapes: Sequence[_Shape]
    columns: Sequence[Column]
    labels: Sequence[str]
    rows: Sequence[Sequence[ScreenCell]]

    @property
    def width(self) -> int:
        """The number of cells across."""
        return sum(column.width + 1 for column in self.columns)


def _layout(table: Table, room: int, *, intervals: bool) -> _Layout:
    """Lay out ``table`` with or without the intervals of its cells; the paper's rows come last, below a rule.

    Long labels are cut unless there are cells to spare among the ``room``.
    """
    shapes = [_shape(table, number, intervals) for number in range(len(table.columns))]
    ours, papers = (
        _lines([row for row in table.rows if row[0].endswith(PAPER_SUFFIX) == is_paper], table, shapes)
        for is_paper in (False, True)
    )
    widest = max((cell_len(clean(label)) for label, _ in (*ours, *papers)), default=1)
    others = [*map(_column, shapes)]
    spare = room - 1 - sum(column.width + 1 for column in others)
    columns = [Column("", max(_MIN_WIDTH, min(widest, max(_MAX_LABEL_WIDTH, spare))), tail=0.5), *others]
    lines = list(ours)
    if ours and papers:
        lines.append(("", [[("─" * column.width, DIM)] for column in columns]))
    lines += papers
    return _Layout(shapes, columns, [label for label, _ in lines], [row for _, row in lines])


class _Shape(NamedTuple):
    """The layout of a column: its title, and the widths of its values and of the intervals beside them, 0 for none."""

    title: str
    value_width: int
    interval_width: int
    is_prose: bool


def _shape(table: Table, number: int, intervals: bool) -> _Shape:
    name, cells = table.columns[number], [cells[number] for _, cells in table.rows]
    values = [cell_len(clean(short_value(cell, table.percent, name))) for cell in cells]
    interval_width = max((len(short_interval(cell, table.percent)) for cell in cells), default=0) if intervals else 0
    is_prose = any(isinstance(cell, str) for cell in cells)
    return _Shape(clean(name), max(values, default=0), interval_width, is_prose)


def _column(shape: _Shape) -> Column:
    """Return a column whose title ends over its values; a longer one extends over their intervals."""
    title_width = cell_len(shape.title)
    if shape.is_prose or not shape.interval_width:
        width = max(_MIN_WIDTH, min(_MAX_WIDTH, max(shape.value_width, title_width)))
        return Column(shape.title, width, right=not shape.is_prose)
    title = " " * (shape.value_width - title_width) + shape.title
    return Column(title, max(shape.value_width + 1 + shape.interval_width, min(_MAX_WIDTH, title_width)))


def _lines(
    rows: Sequence[tuple[str, tuple[Cell, ...]]], table: Table, shapes: Sequence[_Shape]
) -> list[tuple[str, list[ScreenCell]]]:
    """Return the lines of a table with their labels; rows of one run, as in ``RUN / WHAT``, come below its name."""
    names = [label.partition(" / ")[0] for label, _ in rows]
    runs = Counter(names)
    is_grouped = len(list(groupby(names))) == len(runs) < len(rows)
    lines: list[tuple[str, list[ScreenCell]]] = []
    current = ""
    for label, cells in rows:
        style = DIM if label.endswith(PAPER_SUFFIX) else ""
        run, slash, rest = label.partition(" / ")
        if slash and is_grouped and runs[run] > 1:
            if run != current:
                lines.append((run, [[(run, style or HEADING)]]))
            label = f"  {rest}"
        current = run
        lines.append((label, [[(label, style)], *_cells(cells, table, shapes)]))
    return lines


def _cells(cells: Sequence[Cell], table: Table, shapes: Sequence[_Shape]) -> list[ScreenCell]:
    """Return the cells of a row; an interval follows its value, dimmed."""
    row: list[ScreenCell] = []
    for shape, name, cell in zip(shapes, table.columns, cells, strict=True):
        value = short_value(cell, table.percent, name)
        style = DIM if isinstance(cell, Estimate) and cell.value is None else ""
        if shape.interval_width:
            value = " " * (shape.value_width - cell_len(clean(value))) + value
            row.append([(value, style), (f" {short_interval(cell, table.percent)}", DIM)])
        else:
            row.append([(value, style)])
    return row
