"""The Doctor screen: checks of this machine, as in `rashomon doctor`."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from app.doctor import CheckResult, examine
from app.tui.hostile_text import literal
from app.tui.key_commands import bindings
from app.tui.screens.base_screen import RashomonScreen
from app.tui.theme import PARTIAL, RIGHT, WRONG
from app.tui.widgets.table_columns import Column, Row
from app.tui.widgets.titled_panel import panel, set_panel_title
from app.tui.widgets.virtual_table import VirtualTable


class DoctorScreen(RashomonScreen):
    """Checks of this machine, with a fix for what does not work. Details of the selected check are at the bottom."""

    name_ = "doctor"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self) -> None:
        super().__init__()
        self.results: list[CheckResult] = []
        self.checking = False

    def heading(self) -> Content:
        if self.checking:
            return Content("Doctor  checking ...")
        failed = sum(not result.ok for result in self.results)
        to_see = sum(result.ok and bool(result.fix) for result in self.results)
        counts = [f"✗ {failed} failed"] * bool(failed) + [f"! {to_see} to see"] * bool(to_see)
        return Content("Doctor  " + ", ".join([*counts, f"✓ {len(self.results) - failed - to_see} ok"]))

    def body(self) -> ComposeResult:
        table = VirtualTable(
            (Column("", 6), Column("check", 12), Column("result", 0)), empty="checking ...", id="results"
        )
        yield panel(table, "Checks")
        yield panel(Static(id="detail"), "Result")

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VirtualTable))
        self.action_again()

    def action_again(self) -> None:
        """Run all checks again; each result is displayed as it arrives."""
        if self.checking:
            return
        self.checking, self.results = True, []
        self.update_title()

        def work() -> None:
            for result in examine(self.rashomon.workspace):
                self.call_on_loop(partial(self._add, result))

        # The results are added by callbacks; a callback after them ends the checks.
        self.attempt(work, ended=partial(self.call_on_loop, self._finish), group="examine")

    def _add(self, result: CheckResult) -> None:
        self.results.append(result)
        rows = [_row(result) for result in self.results]
        self.query_one(VirtualTable).show(len(rows), lambda first, count: rows[first : first + count])
        self._detail()

    def _finish(self) -> None:
        self.checking = False
        self.update_title()

    @on(VirtualTable.Moved)
    def _detail(self) -> None:
        place = self.query_one(VirtualTable).cursor
        if place < len(self.results):
            result = self.results[place]
            lines = [literal(result.message), *([literal(f"→ {result.fix}", PARTIAL)] if result.fix else [])]
            detail = self.query_one("#detail", Static)
            set_panel_title(detail, literal(result.check.capitalize(), newlines=False))
            detail.update(Content("\n").join(lines))

    def action_copy(self) -> None:
        lines = [
            f"{'ok' if result.ok else 'FAIL'}  {result.check}  {result.message}  {result.fix}"
            for result in self.results
        ]
        self.rashomon.copy("\n".join(lines))


def _row(result: CheckResult) -> Row:
    state = ("✗ fail", WRONG) if not result.ok else ("! see", PARTIAL) if result.fix else ("✓ ok", RIGHT)
    return [[state], result.check, result.message]
