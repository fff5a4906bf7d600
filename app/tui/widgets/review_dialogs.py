"""Dialogs of a review: a longer text to correct."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static, TextArea

from app.tui.hostile_text import literal, sanitize
from app.tui.widgets.dialogs import Dialog

_LIMIT = 200_000


class CorrectionDialog(Dialog[str | None]):
    """A text to change, of any number of lines; None if the dialog is cancelled or the text is left as it was.

    ``heading`` and ``value`` may be hostile. Control characters are shown as escapes, and stay so in a changed text.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "confirm", "Confirm", priority=True),
        Binding("escape", "leave", "Cancel", priority=True),
    ]

    def __init__(self, heading: str, value: str) -> None:
        super().__init__(literal(heading, limit=200))
        self._value = sanitize(value, limit=_LIMIT, newlines=True)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.painted
            yield TextArea(self._value, id="text", soft_wrap=True, tab_behavior="focus")
            yield Static(Content("Ctrl+S confirms, Esc cancels"), classes="hint")

    def action_confirm(self) -> None:
        text = self.query_one(TextArea).text
        self.dismiss(text if text != self._value else None)

    def action_leave(self) -> None:
        self.dismiss(None)
