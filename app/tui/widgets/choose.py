"""Choosing from a list over a screen: one, or some. All by keys."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from app.tui.hostile_text import literal
from app.tui.widgets.dialogs import Dialog
from app.tui.widgets.ticks import CheckList


class ChoiceDialog(Dialog[str | None]):
    """One of ``words``, which may hold anything; None when it is left. ``heading`` is ours."""

    DEFAULT_CSS = """
    Choose OptionList { height: auto; max-height: 14; background: $surface; }
    Choose OptionList, Choose OptionList:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("j", "move('down')", "Down", show=False),
        Binding("k", "move('up')", "Up", show=False),
    ]

    def __init__(self, heading: str, words: Sequence[str], *, chosen: str | None = None) -> None:
        super().__init__(Content(heading))
        self._words, self._chosen = list(words), chosen

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.painted
            yield OptionList(*(Option(literal(word, limit=200)) for word in self._words))
            yield Static(Content("Enter takes it, Esc leaves"), classes="hint")

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = self._words.index(self._chosen) if self._chosen in self._words else 0

    def action_move(self, where: str) -> None:
        options = self.query_one(OptionList)
        options.action_cursor_down() if where == "down" else options.action_cursor_up()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._words[event.option_index])

    def action_leave(self) -> None:
        self.dismiss(None)


class MultipleChoiceDialog(Dialog[list[str] | None]):
    """Any of ``words``, which differ from each other, in their order; None when it is left."""

    DEFAULT_CSS = """
    ChooseSome OptionList { height: auto; max-height: 14; background: $surface; }
    ChooseSome OptionList, ChooseSome OptionList:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("enter", "take", "Take", priority=True),
    ]

    def __init__(self, heading: str, words: Sequence[str], *, chosen: Collection[str] = ()) -> None:
        super().__init__(Content(heading))
        self._words, self._chosen = list(words), set(chosen)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.painted
            yield CheckList([(word, word) for word in self._words], self._chosen)
            yield Static(Content("Space marks, Enter takes them, Esc leaves"), classes="hint")

    def action_take(self) -> None:
        self.dismiss(self.query_one(CheckList).ticked)

    def action_leave(self) -> None:
        self.dismiss(None)
