"""A list of check boxes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.tui.hostile_text import literal


class CheckList(OptionList):
    """Check boxes, toggled with space or Enter. ``words`` are pairs of key and text; the text may be hostile."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "select", "Tick", show=False),
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
    ]

    class Changed(Message):
        """A box was toggled."""

        def __init__(self, ticks: CheckList) -> None:
            self.ticks = ticks
            super().__init__()

    def __init__(
        self, words: Sequence[tuple[str, str]], ticked: Collection[str] = (), *, id: str | None = None
    ) -> None:
        self._words = list(words)
        self._ticked = {key for key, _ in words if key in ticked}
        super().__init__(*(Option(self._prompt(i)) for i in range(len(self._words))), id=id)

    @property
    def ticked(self) -> list[str]:
        """The keys of the checked boxes, in the order of the list."""
        return [key for key, _ in self._words if key in self._ticked]

    def _prompt(self, place: int) -> Content:
        key, text = self._words[place]
        sign = Content.styled("[x] ", "bold") if key in self._ticked else Content("[ ] ")
        return sign + literal(text, limit=200)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._ticked ^= {self._words[event.option_index][0]}
        self.replace_option_prompt_at_index(event.option_index, self._prompt(event.option_index))
        self.post_message(self.Changed(self))
