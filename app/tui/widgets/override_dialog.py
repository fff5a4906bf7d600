"""Dialog for an override: another label for an answer, the reason, and the annotator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from app.annotation.labelling_session import match_label
from app.tui.hostile_text import literal
from app.tui.widgets.dialogs import Dialog
from app.tui.widgets.titled_panel import panel
from benchmarks.errors import SpecError
from judges.human_labels_and_samples import override_id

_HINT = "Enter continues, Esc cancels"


class NewLabel(NamedTuple):
    """An override as typed."""

    label: str
    reason: str
    person: str


class OverrideDialog(Dialog[NewLabel | None]):
    """Three inputs; Enter moves to the next and confirms the last. Returns None if the dialog is cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel")]

    def __init__(self, labels: Sequence[str], now: str, person: str) -> None:
        super().__init__(Content("Override this label; the judge's label is kept too"))
        self._labels, self._now, self._person = labels, now, person

    def compose(self) -> ComposeResult:
        numbered = "  ".join(f"{number} {label}" for number, label in enumerate(self._labels, 1))
        with Vertical():
            yield self.painted
            yield Static(literal(f"now: {self._now}", limit=200))
            yield Static(literal(numbered))
            yield panel(Input(placeholder="its number or first letters", id="label", compact=True), "Label")
            yield panel(Input(placeholder="what in the answer justifies it", id="reason", compact=True), "Reason")
            yield panel(Input(self._person, placeholder="your name", id="person", compact=True), "Annotator")
            yield Static(Content(_HINT), id="hint")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#label"))

    @on(Input.Submitted)
    def _next(self, event: Input.Submitted) -> None:
        label = match_label(self.query_one("#label", Input).value.strip(), self._labels)
        reason = self.query_one("#reason", Input).value.strip()
        person = self.query_one("#person", Input).value.strip()
        if label is None:
            self._focus("label", "this matches no label, or several")
        elif not reason:
            self._focus("reason", "" if event.input.id == "label" else "an override needs a reason")
        elif event.input.id != "person":
            self._focus("person")
        else:
            try:
                override_id(person)
            except SpecError as error:
                self._focus("person", str(error))
                return
            self.dismiss(NewLabel(label, reason, person))

    def _focus(self, field: str, problem: str = "") -> None:
        self.set_focus(self.query_one(f"#{field}"))
        self.query_one("#hint", Static).update(literal(problem or _HINT))

    def action_leave(self) -> None:
        self.dismiss(None)
