"""OverrideDialog: another label for an answer, the reason, and who says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from app.annotation.session import meant
from app.tui.hostile_text import literal
from app.tui.widgets.dialogs import Dialog
from benchmarks.errors import SpecError
from judges.human_labels import override_id


class NewLabel(NamedTuple):
    """What was typed."""

    label: str
    reason: str
    person: str


class OverrideDialog(Dialog[NewLabel | None]):
    """Three lines to type, Enter goes on to the next and takes it at the end; None when it is left."""

    DEFAULT_CSS = """
    OverrideDialog > Vertical { width: 76; max-height: 95%; padding: 0 2; border: solid $accent; }
    OverrideDialog .heading { margin-bottom: 0; }
    OverrideDialog Input { height: 3; }
    OverrideDialog #hint { color: #909090; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]

    def __init__(self, labels: Sequence[str], now: str, person: str) -> None:
        super().__init__(Content("Another label for this answer; the judge's stays beside it"))
        self._labels, self._now, self._person = labels, now, person

    def compose(self) -> ComposeResult:
        numbered = "  ".join(f"{number} {label}" for number, label in enumerate(self._labels, 1))
        with Vertical():
            yield self.painted
            yield Static(literal(f"now: {self._now}", limit=200))
            yield Static(literal(numbered))
            yield Input(placeholder="label: its number, or how it begins", id="label")
            yield Input(placeholder="why: what in the answer makes it this label", id="reason")
            yield Input(self._person, placeholder="who says so", id="person")
            yield Static(Content("Enter goes on, Esc leaves"), id="hint")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#label"))

    @on(Input.Submitted)
    def _next(self, event: Input.Submitted) -> None:
        label = meant(self.query_one("#label", Input).value.strip(), self._labels)
        reason = self.query_one("#reason", Input).value.strip()
        person = self.query_one("#person", Input).value.strip()
        if label is None:
            self._wants("label", "this is none of the labels, or several")
        elif not reason:
            self._wants("reason", "" if event.input.id == "label" else "an override needs a reason")
        elif event.input.id != "person":
            self._wants("person", "")
        else:
            try:
                override_id(person)
            except SpecError as error:
                self._wants("person", str(error))
                return
            self.dismiss(NewLabel(label, reason, person))

    def _wants(self, field: str, why: str) -> None:
        self.set_focus(self.query_one(f"#{field}"))
        self.query_one("#hint", Static).update(literal(why or "Enter goes on, Esc leaves"))

    def action_leave(self) -> None:
        self.dismiss(None)
