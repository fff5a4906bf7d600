"""The Tables screen: the benchmark's tables, as in the paper, of one or more runs."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from app.report.tables.paper_rows import without_published
from app.tui.hostile_text import literal, sanitize
from app.tui.key_commands import bindings
from app.tui.screens.results_screen import ResultsScreen
from app.tui.screens.settings_screen import NOT_SAID, TRUST_WORDS, change_settings
from app.tui.theme import DIM
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.result_table import ResultTable
from app.tui.widgets.tab_line import TabLine
from benchmarks.tables.scorecard import NAME as SCORECARD
from benchmarks.vocabulary import Table


class TablesScreen(ResultsScreen):
    """The benchmark's tables, of one or more runs, with the paper's rows."""

    name_ = "tables"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self, folders: tuple[Path, ...]) -> None:
        super().__init__(folders)
        self.published = True
        self.tables: list[Table] = []
        self.place = 0
        """The index of the table on display."""

    def body(self) -> ComposeResult:
        with Vertical(id="body"):
            yield TabLine({})
            yield ResultTable(id="table")

    def compute(self) -> None:
        results, folders, judge, settings = self.rashomon.results, self.folders, self.judge, self.rashomon.settings

        def work() -> tuple[list[Table], bool]:
            tables, inputs = results.tables(folders, judge, settings.rule), results.inputs(folders, judge)
            leads = inputs.leads_with_scorecard
            if leads:  # as in `rashomon show`
                tables = sorted(tables, key=lambda table: table.name != SCORECARD)
            return tables, leads and settings.trust is None and inputs.asks_what_should_win

        self.work(work, self._show_tables)

    def _show_tables(self, computed: tuple[list[Table], bool] | str) -> None:
        if isinstance(computed, str):
            self.tables = []
            self.query_one(TabLine).replace({}, "")
            self.result_table.show_message(computed)
            return
        tables, asks = computed
        previous = self.tables[self.place].name if self.tables else ""
        self.tables = tables
        names = [table.name for table in tables]
        self.place = names.index(previous) if previous in names else 0
        is_first = not self.result_table.table
        self._redraw()
        if is_first:
            self.set_focus(self.result_table.rows)
        if asks:
            self._ask_what_should_win()

    def _ask_what_should_win(self) -> None:
        """Ask once for what should win; Settings changes the answer, and Esc is one as well."""
        words = {text: word for word, text in TRUST_WORDS.items()}

        def on_choice(text: str | None) -> None:
            change_settings(self.rashomon, trust=words[text or NOT_SAID])
            self.compute()

        heading = "Where your sources disagree, what should win? (Settings changes it)"
        self.app.push_screen(ChoiceDialog(heading, [*words]), on_choice)

    def _redraw(self) -> None:
        """Display the current table."""
        if not self.tables:
            return
        table = self.tables[self.place]
        displayed = table if self.published else without_published(table)
        self.result_table.show(displayed, position=f"{self.place + 1} of {len(self.tables)}")
        self.query_one(TabLine).replace({other.name: sanitize(other.name) for other in self.tables}, table.name)

    @property
    def result_table(self) -> ResultTable:
        return self.query_one(ResultTable)

    @on(TabLine.Chosen)
    def _chosen(self, event: TabLine.Chosen) -> None:
        self._show_table([table.name for table in self.tables].index(event.pane))

    def _show_table(self, place: int) -> None:
        if self.tables:
            self.place = place % len(self.tables)
            self._redraw()

    def action_next(self) -> None:
        self._show_table(self.place + 1)

    def action_previous(self) -> None:
        self._show_table(self.place - 1)

    def action_list(self) -> None:
        """Choose a table by name."""
        entries = [_entry(table).plain for table in self.tables]

        def on_choice(entry: str | None) -> None:
            if entry is not None:
                self._show_table(entries.index(entry))

        if entries:
            self.app.push_screen(ChoiceDialog("Open a table", entries, chosen=entries[self.place]), on_choice)

    def action_samples(self) -> None:
        """Open the answers of one of the runs; Esc returns here."""
        self.rashomon.open_screen("samples", on_top=True)

    def action_published(self) -> None:
        """Show or hide the paper's rows."""
        self.published = not self.published
        self._redraw()


def _entry(table: Table) -> Content:
    """Return a table's name and title."""
    return Content.assemble(literal(table.name), "  ", literal(table.title, DIM))
