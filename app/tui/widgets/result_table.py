"""A table of a benchmark or a comparison, with its notes underneath."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.report.render import missing_value_notes, short_interval, short_value
from app.text.escape import clean
from app.tui.hostile_text import literal
from app.tui.theme import DIM, PARTIAL
from app.tui.widgets.panel import panel, set_panel_title
from app.tui.widgets.virtual_table import Cell as ScreenCell
from app.tui.widgets.virtual_table import Column, VirtualTable
from benchmarks.vocabulary import Cell, Estimate, Table

PAPER_SUFFIX = " (paper)"
_MAX_WIDTH = 44
_MAX_LABEL_WIDTH = 34
_MIN_WIDTH = 5


class ResultTable(Vertical):
    """A table with its notes, set by :meth:`show`; the first column stays in place when the others scroll sideways.

    The notes are folded to one line until :meth:`toggle_notes` unfolds them.
    """

    def __init__(self, *, empty: str = "computing …", id: str | None = None) -> None:
        super().__init__(id=id)
        self._empty = empty
        self._folded = True
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

    def show(self, table: Table, *, intervals: bool = True) -> None:
        """Show ``table``, with or without confidence intervals.

        Each column of estimates is followed by one of their intervals. The paper's rows come last, below a rule.
        """
        self.table = table
        ours = [row for row in table.rows if not row[0].endswith(PAPER_SUFFIX)]
        papers = [row for row in table.rows if row[0].endswith(PAPER_SUFFIX)]
        spread = [
            intervals and any(short_interval(cells[i], table.percent) for _, cells in table.rows)
            for i in range(len(table.columns))
        ]
        rows: list[list[ScreenCell]] = [_row(label, cells, table, spread) for label, cells in ours]
        keys = [(number, label) for number, (label, _) in enumerate(ours)]
        columns = _columns(table, [*rows, *(_row(label, cells, table, spread) for label, cells in papers)], spread)
        if ours and papers:
            rows.append([[("─" * column.width, DIM)] for column in columns])
            keys.append((len(ours), ""))
        rows += [_row(label, cells, table, spread) for label, cells in papers]
        keys += [(number, label) for number, (label, _) in enumerate(papers, len(keys))]
        self.query_one(".message").add_class("-empty")
        set_panel_title(self.rows, literal(table.title))
        self.rows.empty = "no rows"
        self.rows.show(len(rows), lambda first, count: rows[first : first + count], keys=keys, columns=columns)
        self._show_notes()

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

    def toggle_notes(self) -> None:
        """Fold or unfold the notes."""
        self._folded = not self._folded
        self._show_notes()

    def _show_notes(self) -> None:
        if self.table is not None:
            lines = [literal(note) for note in (*self.table.notes, *missing_value_notes(self.table))]
            if self._folded and lines:
                count = f"{len(lines)} notes" if len(lines) > 1 else "1 note"
                lines = [Content.styled(f"N unfolds {count}: ", DIM) + lines[0]]
            self.query_one(".notes Static", Static).update(Content("\n").join(lines))
        self.set_class(self._folded, "-folded")


def _columns(table: Table, rows: Sequence[Sequence[ScreenCell]], spread: Sequence[bool]) -> list[Column]:
    columns = []
    titles = ["", *(title for i, name in enumerate(table.columns) for title in ([name, ""] if spread[i] else [name]))]
    prose = {name for i, name in enumerate(table.columns) if any(isinstance(cells[i], str) for _, cells in table.rows)}
    for number, title in enumerate(titles):
        content_width = max((_width(row[number]) for row in rows), default=0)
        limit = _MAX_LABEL_WIDTH if number == 0 else _MAX_WIDTH
        least = 1 if number and not title else _MIN_WIDTH
        width = max(least, min(limit, max(content_width, cell_len(clean(title)))))
        right = bool(number and title) and title not in prose
        columns.append(Column(clean(title), width, right=right, tail=0 if number else 0.5))
    return columns


def _width(cell: ScreenCell) -> int:
    return cell_len(clean(cell)) if isinstance(cell, str) else sum(cell_len(clean(text)) for text, _ in cell)


def _row(label: str, cells: Sequence[Cell], table: Table, spread: Sequence[bool]) -> list[ScreenCell]:
    """Return the label and the cells of a row, each cell of a ``spread`` column followed by its interval."""
    row: list[ScreenCell] = [[(label, PARTIAL)] if label.endswith(PAPER_SUFFIX) else label]
    for name, cell, with_interval in zip(table.columns, cells, spread, strict=True):
        value = short_value(cell, table.percent, name)
        row.append([(value, DIM)] if isinstance(cell, Estimate) and cell.value is None else value)
        if with_interval:
            row.append([(short_interval(cell, table.percent), DIM)])
    return row
