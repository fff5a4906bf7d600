"""ResultTable: one of the benchmark's or a comparison's tables, with what must be read with it underneath."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.report.render import reasons, terminal_cell
from app.text.escape import clean
from app.tui.hostile_text import literal
from app.tui.theme import DIM, PARTIAL
from app.tui.widgets.virtual_table import Cell as Shown
from app.tui.widgets.virtual_table import Column, VirtualTable
from benchmarks.base import Cell, Estimate, Table

PAPER = " (paper)"
_WIDEST = 44
_WIDEST_LABEL = 34
_NARROWEST = 5


class ResultTable(Vertical):
    """A table whose first column stays when it scrolls sideways, its notes under it. Give it one by :meth:`show`."""

    DEFAULT_CSS = """
    ResultTable { height: 1fr; }
    ResultTable .caption { height: auto; max-height: 2; text-style: bold; padding: 0 1; }
    ResultTable .notes { height: auto; max-height: 40%; padding: 0 1; color: #909090; }
    """

    def __init__(self, *, empty: str = "computing …", id: str | None = None) -> None:
        super().__init__(id=id)
        self._empty = empty
        self.table: Table | None = None
        """What is shown."""

    def compose(self) -> ComposeResult:
        yield Static(classes="caption")
        yield VirtualTable((Column("", 0),), frozen=1, empty=self._empty)
        with VerticalScroll(classes="notes"):
            yield Static()

    @property
    def rows(self) -> VirtualTable:
        """The table as a widget: for its cursor, and for focus."""
        return self.query_one(VirtualTable)

    def show(self, table: Table, *, intervals: bool = True) -> None:
        """Show ``table``; without ``intervals`` its values alone."""
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
        self.rows.empty = "no row"
        self.rows.show(
            len(rows),
            lambda first, count: rows[first : first + count],
            keys=[(number, label) for number, (label, _) in enumerate(table.rows)],
            columns=_columns(table, rows),
        )
        self.query_one(".notes Static", Static).update(_notes(table))

    def say(self, told: str) -> None:
        """Show a sentence in the place of a table; it may hold anything."""
        self.table = None
        self.query_one(".caption", Static).update(literal(told))
        self.rows.empty = ""
        self.rows.show(0, lambda first, count: (), columns=(Column("", 0),))
        self.query_one(".notes Static", Static).update("")


def _columns(table: Table, rows: Sequence[Sequence[Shown]]) -> list[Column]:
    made = []
    for number, title in enumerate(("", *table.columns)):
        wide = max((_width(row[number]) for row in rows), default=0)
        title = clean(title)
        most = _WIDEST_LABEL if number == 0 else _WIDEST
        width = max(_NARROWEST, min(most, max(wide, cell_len(title))))
        prose = number == 0 or any(isinstance(cells[number - 1], str) for _, cells in table.rows)
        made.append(Column(title, width, right=not prose, end=0 if number else 0.5))
    return made


def _width(cell: Shown) -> int:
    return cell_len(clean(cell)) if isinstance(cell, str) else sum(cell_len(clean(text)) for text, _ in cell)


def _label(label: str) -> Shown:
    return [(label, PARTIAL)] if label.endswith(PAPER) else label


def _cell(cell: Cell, table: Table, spread: int) -> Shown:
    """A cell, its interval in ``spread`` characters, so that the figures of a column stand under each other."""
    told, interval = _parts(cell, table)
    if isinstance(cell, str):
        return told
    gap = [(f" {interval:<{spread}}", DIM)] if spread else []
    return [(told, DIM if told == "n/a" else ""), *gap] if told else ""


def _parts(cell: Cell, table: Table) -> tuple[str, str]:
    """A cell's figure or words, and its interval."""
    if not isinstance(cell, Estimate):
        return ("" if cell is None else str(cell)), ""
    told, _, interval = terminal_cell(cell, table.percent).partition("\n")
    return told, interval


def _notes(table: Table) -> Content:
    lines = [literal(note) for note in (*table.notes, *reasons(table))]
    return Content("\n").join(lines)
