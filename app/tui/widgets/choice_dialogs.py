"""Dialogs for a choice from a list: one item, or several."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from app.tui.hostile_text import literal
from app.tui.widgets.check_list import CheckList
from app.tui.widgets.dialogs import Dialog


class ChoiceDialog(Dialog[str | None]):
    """A choice of one word; None if the dialog is cancelled. ``words`` may be hostile, ``heading`` must be ours.

    With ``typed``, which says what, another word may be typed below the list.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Cancel"),
        Binding("j", "move('down')", "Down", show=False),
        Binding("k", "move('up')", "Up", show=False),
    ]

    def __init__(self, heading: str, words: Sequence[str], *, chosen: str | None = None, typed: str = "") -> None:
        super().__init__(Content(heading))
        self._words, self._chosen, self._typed = list(words), chosen, typed
        self.set_class(bool(typed), "-typed")

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.painted
            if self._words:
                yield OptionList(*(Option(literal(word, limit=200)) for word in self._words))
            if self._typed:
                yield Input(placeholder=self._typed)
            to_input = "Tab goes to the line, " if self._typed and self._words else ""
            yield Static(Content(f"{to_input}Enter confirms, Esc cancels"), classes="hint")

    def on_mount(self) -> None:
        for options in self.query(OptionList):
            options.highlighted = self._words.index(self._chosen) if self._chosen in self._words else 0

    def action_move(self, direction: str) -> None:
        for options in self.query(OptionList):
            options.action_cursor_down() if direction == "down" else options.action_cursor_up()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._words[event.option_index])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if word := event.value.strip():
            self.dismiss(word)

    def action_leave(self) -> None:
        self.dismiss(None)


class MultipleChoiceDialog(Dialog[list[str] | None]):
    """A choice of any number of words, returned in their order; None if the dialog is cancelled.

    ``words`` must be unique and may be hostile; ``heading`` must be ours.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Cancel"),
        Binding("enter", "confirm", "Confirm", priority=True),
    ]

    def __init__(self, heading: str, words: Sequence[str], *, chosen: Collection[str] = ()) -> None:
        super().__init__(Content(heading))
        self._words, self._chosen = list(words), set(chosen)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.painted
            yield CheckList([(word, word) for word in self._words], self._chosen)
            yield Static(Content("Space selects, Enter confirms, Esc cancels"), classes="hint")

    def action_confirm(self) -> None:
        self.dismiss(self.query_one(CheckList).checked)

    def action_leave(self) -> None:
        self.dismiss(None)
