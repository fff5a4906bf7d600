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
    """Check boxes, selected with space or Enter. ``items`` are pairs of key and text; the text may be hostile."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "select", "Select"),
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
    ]

    class Changed(Message):
        """A box was toggled."""

        def __init__(self, check_list: CheckList) -> None:
            self.check_list = check_list
            super().__init__()

    def __init__(
        self, items: Sequence[tuple[str, str]], checked: Collection[str] = (), *, id: str | None = None
    ) -> None:
        self._items = list(items)
        self._checked = {key for key, _ in items if key in checked}
        super().__init__(*(Option(self._prompt(i)) for i in range(len(self._items))), id=id)

    @property
    def checked(self) -> list[str]:
        """The keys of the checked boxes, in the order of the list."""
        return [key for key, _ in self._items if key in self._checked]

    def _prompt(self, place: int) -> Content:
        key, text = self._items[place]
        sign = Content.styled("[x] ", "bold") if key in self._checked else Content("[ ] ")
        return sign + literal(text, limit=200)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._checked ^= {self._items[event.option_index][0]}
        self.replace_option_prompt_at_index(event.option_index, self._prompt(event.option_index))
        self.post_message(self.Changed(self))
