"""Runs: all runs of the workspace, and what can be done with them."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input

from app.tui.commands import bindings
from app.tui.safe import literal
from app.tui.screens.base import RashomonScreen
from app.tui.theme import state_look
from app.tui.watch import RunNow, Snapshot
from app.tui.widgets.virtual_table import Column, Row, VirtualTable

_COLUMNS = (Column("state", 13), Column("run", 0), Column("done", 13, right=True), Column("model", 24))


class RunsScreen(RashomonScreen):
    """All runs of the workspace."""

    name_ = "runs"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    DEFAULT_CSS = """
    RunsScreen #filter { display: none; }
    RunsScreen #filter.-shown { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[RunNow] = []

    def heading(self) -> Content:
        return Content("Runs  ") + literal(self.rashomon.workspace.path, "$text-muted")

    def body(self) -> ComposeResult:
        yield Input(placeholder="words of a run's name, state, model, benchmark", id="filter")
        yield VirtualTable(_COLUMNS, empty="no runs yet", id="runs")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(VirtualTable).focus()

    def changed(self, snapshot: Snapshot) -> None:
        words = self.query_one("#filter", Input).value.lower().split()
        self.runs = [run for run in reversed(snapshot.runs) if all(word in _words(run) for word in words)]
        rows = [self._row(run) for run in self.runs]
        table = self.query_one(VirtualTable)
        table.show(len(rows), lambda first, count: rows[first : first + count], keys=[run.name for run in self.runs])

    def _row(self, run: RunNow) -> Row:
        look = state_look(run.summary.state)
        done = f"{run.summary.done}/{run.summary.total}"
        return [[(str(look), look.colour)], run.name, done, str(run.summary.spec.get("model", ""))]

    @property
    def chosen(self) -> Path | None:
        """The folder of the run under the cursor."""
        place = self.query_one(VirtualTable).cursor
        return self.runs[place].folder if place < len(self.runs) else None

    @on(VirtualTable.Moved)
    def _moved(self) -> None:
        self.rashomon.current = (self.chosen,) if self.chosen else ()

    def action_filter(self) -> None:
        typed = self.query_one("#filter", Input)
        typed.add_class("-shown")
        typed.focus()

    @on(Input.Changed, "#filter")
    def _filtered(self) -> None:
        self.changed(self.rashomon.snapshot)


def _words(run: RunNow) -> str:
    spec = run.summary.spec
    return " ".join([run.name, run.summary.state, *(str(spec.get(key, "")) for key in ("benchmark", "model"))]).lower()
