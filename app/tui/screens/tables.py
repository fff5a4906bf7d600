"""Tables: each of the benchmark's tables as in the paper, of one run or several."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from app.report.tables import own_rows
from app.tui.commands import bindings
from app.tui.hostile_text import literal
from app.tui.screens.results import ResultsScreen
from app.tui.widgets.choose import ChoiceDialog
from app.tui.widgets.result_table import ResultTable
from benchmarks.base import Table


class TablesScreen(ResultsScreen):
    """A list of the tables (where there is room), and the one that is chosen."""

    name_ = "tables"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    DEFAULT_CSS = """
    TablesScreen #names { width: 26; background: $surface; }
    TablesScreen #names, TablesScreen #names:focus { border: none; }
    TablesScreen.-narrow #names { display: none; }
    """

    def __init__(self, folders: tuple[Path, ...]) -> None:
        super().__init__(folders)
        self.published = True
        self.tables: list[Table] = []
        self.place = 0
        """The number of the table that is shown."""

    def body(self) -> ComposeResult:
        with Horizontal(id="body"):
            yield OptionList(id="names")
            with Vertical():
                yield Static(id="state")
                yield ResultTable(id="table")

    def compute(self) -> None:
        self.work(lambda: self.rashomon.results.tables(self.folders, self.judge), self._show_tables)

    def _show_tables(self, found: list[Table] | str) -> None:
        if isinstance(found, str):
            self.tables = []
            self.query_one("#names", OptionList).clear_options()
            self.query_one(ResultTable).say(found)
            return
        before = self.tables[self.place].name if self.tables else ""
        self.tables = found
        names = [table.name for table in found]
        self.place = names.index(before) if before in names else 0
        listed = self.query_one("#names", OptionList)
        listed.clear_options()
        listed.add_options([Option(literal(name)) for name in names])
        first = not self.query_one(ResultTable).table
        self.redraw()
        if first:
            self.set_focus(self.query_one(ResultTable).rows)

    def redraw(self) -> None:
        if not self.tables:
            return
        table = self.tables[self.place]
        benchmark = self._benchmark()
        shown = table if self.published or benchmark is None else own_rows(table, benchmark)
        self.query_one(ResultTable).show(shown, intervals=self.intervals)
        self.query_one("#names", OptionList).highlighted = self.place
        self._tell_state()

    def _benchmark(self) -> str | None:
        now = self.run_now(self.folders[0])
        return None if now is None else str(now.summary.spec.get("benchmark"))

    def _state(self) -> Content:
        if not self.tables:
            return super()._state()
        of = f"{self.place + 1} of {len(self.tables)}"
        return literal(f"{self.tables[self.place].name}, table {of}   ", "bold $foreground") + super()._state()

    @on(OptionList.OptionHighlighted, "#names")
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_index != self.place and event.option_list.has_focus:
            self.place = event.option_index
            self.redraw()

    @on(OptionList.OptionSelected, "#names")
    def _selected(self) -> None:
        self.set_focus(self.query_one(ResultTable).rows)

    def _go_to(self, place: int) -> None:
        if self.tables:
            self.place = place % len(self.tables)
            self.redraw()

    def action_next(self) -> None:
        self._go_to(self.place + 1)

    def action_previous(self) -> None:
        self._go_to(self.place - 1)

    def action_list(self) -> None:
        """Choose a table by its name."""
        names = [table.name for table in self.tables]

        def chosen(name: str | None) -> None:
            if name is not None:
                self._go_to(names.index(name))

        if names:
            self.app.push_screen(ChoiceDialog("Which table?", names, chosen=names[self.place]), chosen)

    def action_samples(self) -> None:
        """The samples of one of the runs; Esc comes back."""
        self.rashomon.go("samples", over=True)

    def action_published(self) -> None:
        """Show the paper's rows, or leave them out."""
        self.published = not self.published
        self.redraw()
