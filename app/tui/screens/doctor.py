"""Doctor: what works on this machine, as `rashomon doctor` says it."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from app.doctor import CheckResult, examine
from app.tui.commands import bindings
from app.tui.hostile_text import literal
from app.tui.screens.base import RashomonScreen
from app.tui.theme import PARTIAL, RIGHT, WRONG
from app.tui.widgets.virtual_table import Column, Row, VirtualTable


class DoctorScreen(RashomonScreen):
    """What works on this machine, and how to mend what does not. The chosen line is told in full below."""

    name_ = "doctor"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    DEFAULT_CSS = """
    DoctorScreen #detail { height: auto; max-height: 8; min-height: 3; background: $surface; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.findings: list[CheckResult] = []
        self.examining = False

    def heading(self) -> Content:
        if self.examining:
            return Content("Doctor  examining ...")
        bad = sum(not finding.ok for finding in self.findings)
        return Content("Doctor  " + (f"✗ {bad} of {len(self.findings)} do not work" if bad else "✓ all of it works"))

    def body(self) -> ComposeResult:
        yield VirtualTable(
            (Column("", 6), Column("what", 12), Column("found", 0)), empty="examining ...", id="findings"
        )
        yield Static(id="detail")

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VirtualTable))
        self.action_again()

    def action_again(self) -> None:
        """Examine the machine anew; findings come as they are made."""
        if self.examining:
            return
        self.examining, self.findings = True, []
        self.retitle()

        def work() -> None:
            for finding in examine(self.rashomon.workspace):
                self.later(partial(self._found, finding))

        self.in_thread(work, self._ended, group="examine")

    def _found(self, finding: CheckResult) -> None:
        if self.is_mounted and self.query("#detail"):  # as the app closes, it is gone again
            self.findings.append(finding)
            rows = [_row(each) for each in self.findings]
            self.query_one(VirtualTable).show(len(rows), lambda first, count: rows[first : first + count])
            self._detail()

    def _ended(self, _: None) -> None:
        self.call_later(self._settled)

    def _settled(self) -> None:
        self.examining = False
        self.retitle()

    @on(VirtualTable.Moved)
    def _detail(self) -> None:
        place = self.query_one(VirtualTable).cursor
        if place < len(self.findings):
            finding = self.findings[place]
            lines = [literal(finding.told), *([literal(f"→ {finding.mend}", PARTIAL)] if finding.mend else [])]
            self.query_one("#detail", Static).update(Content("\n").join(lines))

    def action_copy(self) -> None:
        lines = [f"{'ok' if each.ok else 'FAIL'}  {each.what}  {each.told}  {each.mend}" for each in self.findings]
        self.rashomon.copy("\n".join(lines))


def _row(finding: CheckResult) -> Row:
    state = ("✗ fail", WRONG) if not finding.ok else ("! see", PARTIAL) if finding.mend else ("✓ ok", RIGHT)
    return [[state], finding.what, finding.told]
