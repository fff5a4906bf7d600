"""Help: what the keys do, those of the focused widget first, then the screen's, then everywhere's."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Static

from app.tui.commands import EVERYWHERE, commands_of
from app.tui.keymap import shown_keys
from app.tui.safe import literal
from app.tui.screens.base import RashomonScreen
from app.tui.theme import DIM, RIGHT

_NAMES = {EVERYWHERE: "everywhere", "table": "in this table", "choice": "in this list", "preview": "in this prompt"}


class HelpScreen(ModalScreen[None]):
    """Over a screen; Esc closes it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: black 60%; }
    HelpScreen > Vertical { width: 76; max-width: 98%; height: 90%; background: $panel; border: solid $primary; padding: 0 1; }
    HelpScreen VerticalScroll { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f1,question_mark", "dismiss", "Close")]

    def __init__(self, screen: RashomonScreen) -> None:
        super().__init__()
        self._about, self._places = screen, screen.key_help()
        self._typing = isinstance(screen.focused, Input)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content.styled(f"Help: {_title(self._about)}", "bold"))
            with VerticalScroll():
                yield Static(self._text())
            yield Static(Content.styled("Esc closes, arrows scroll", DIM))

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def _text(self) -> Content:
        lines = [literal(_about(self._about), newlines=True)]
        if self._typing:
            lines.append(Content("\nYou are typing: letters and ? go into the field; Tab leaves it."))
        for place in dict.fromkeys((*self._places, EVERYWHERE)):
            lines.append(Content.styled(f"\n{_NAMES.get(place, 'on this screen')}", "bold"))
            lines += self._keys(place)
        return Content("\n").join(lines)

    def _keys(self, place: str) -> Sequence[Content]:
        asked = self._about.rashomon.keys
        return [
            Content.assemble(
                Content.styled(f"  {shown_keys(command, asked):<14}", RIGHT),
                Content(f"{command.title:<18}"),
                Content.styled(command.description, DIM),
            )
            for command in commands_of(place)
        ]


def _title(screen: RashomonScreen) -> str:
    from app.tui.screens import SCREENS

    entry = SCREENS.get(screen.name_)
    return entry.title if entry is not None else screen.name_


def _about(screen: Widget) -> str:
    """What a screen is for: the first paragraph of its class's documentation."""
    return inspect.cleandoc(type(screen).__doc__ or "").partition("\n\n")[0].replace("\n", " ")
