"""A table of a benchmark or a comparison, with its notes underneath."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.report.render import missing_value_notes, terminal_cell
from app.text.escape import clean
from app.tui.hostile_text import literal
from app.tui.theme import DIM, PARTIAL
from app.tui.widgets.virtual_table import Cell as ScreenCell
from app.tui.widgets.virtual_table import Column, VirtualTable
from benchmarks.vocabulary import Cell, Estimate, Table

PAPER_SUFFIX = " (paper)"
_MAX_WIDTH = 44
_MAX_LABEL_WIDTH = 34
_MIN_WIDTH = 5


class ResultTable(Vertical):
    """A table with its notes, set by :meth:`show`; the first column stays in place when the others scroll sideways."""

    def __init__(self, *, empty: str = "computing …", id: str | None = None) -> None:
        super().__init__(id=id)
        self._empty = empty
        self.table: Table | None = None
        """The table on display; None if a message is."""

    def compose(self) -> ComposeResult:
        yield Static(classes="caption")
        yield VirtualTable((Column("", 0),), frozen=1, empty=self._empty)
        with VerticalScroll(classes="notes"):
            yield Static()

    @property
    def rows(self) -> VirtualTable:
        """The widget with the rows, for cursor and focus."""
        return self.query_one(VirtualTable)

    def show(self, table: Table, *, intervals: bool = True) -> None:
        """Show ``table``, with or without confidence intervals."""
        self.table = table
        spreads = [
            max((len(_parts(cells[i], table)[1]) for _, cells in table.rows), default=0) if intervals else 0
            for i in range(len(table.columns))
        ]
        rows = [
            [_label(label), *(_cell(cell, table, spread) for cell, spread in zip(cells, spreads, strict=True))]
            for label, cells in table.rows
        ]
        self.query_one(".caption", Static).update(literal(table.title))
        self.rows.empty = "no rows"
        self.rows.show(
            len(rows),
            lambda first, count: rows[first : first + count],
            keys=[(number, label) for number, (label, _) in enumerate(table.rows)],
            columns=_columns(table, rows),
        )
        self.query_one(".notes Static", Static).update(_notes(table))

    def show_message(self, message: str) -> None:
        """Show a message, which may be hostile, in place of a table."""
        self.table = None
        self.query_one(".caption", Static).update(literal(message))
        self.rows.empty = ""
        self.rows.show(0, lambda first, count: (), columns=(Column("", 0),))
        self.query_one(".notes Static", Static).update("")


def _columns(table: Table, rows: Sequence[Sequence[ScreenCell]]) -> list[Column]:
    columns = []
    for number, title in enumerate(("", *table.columns)):
        content_width = max((_width(row[number]) for row in rows), default=0)
        title = clean(title)
        limit = _MAX_LABEL_WIDTH if number == 0 else _MAX_WIDTH
        width = max(_MIN_WIDTH, min(limit, max(content_width, cell_len(title))))
        prose = number == 0 or any(isinstance(cells[number - 1], str) for _, cells in table.rows)
        columns.append(Column(title, width, right=not prose, tail=0 if number else 0.5))
    return columns


def _width(cell: ScreenCell) -> int:
    return cell_len(clean(cell)) if isinstance(cell, str) else sum(cell_len(clean(text)) for text, _ in cell)


def _label(label: str) -> ScreenCell:
    return [(label, PARTIAL)] if label.endswith(PAPER_SUFFIX) else label


def _cell(cell: Cell, table: Table, spread: int) -> ScreenCell:
    """Return a cell, its interval padded to ``spread`` characters so that the values of a column align."""
    value, interval = _parts(cell, table)
    if isinstance(cell, str):
        return value
    padded = [(f" {interval:<{spread}}", DIM)] if spread else []
    return [(value, DIM if value == "n/a" else ""), *padded] if value else ""


def _parts(cell: Cell, table: Table) -> tuple[str, str]:
    """Return a cell's value or words, and its interval."""
    if not isinstance(cell, Estimate):
        return ("" if cell is None else str(cell)), ""
    value, _, interval = terminal_cell(cell, table.percent).partition("\n")
    return value, interval


def _notes(table: Table) -> Content:
    lines = [literal(note) for note in (*table.notes, *missing_value_notes(table))]
    return Content("\n").join(lines)
