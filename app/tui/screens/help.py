"""Help: what the keys do, those of the focused widget first, then the screen's, then everywhere's."""

from __future__ import annotations

import inspect
from textwrap import wrap
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

_WIDTH = 40
"""Cells for a description, in a box that fits 80."""
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
        # One text: a widget for each of its cells takes long to lay out.
        lines = [literal(_about(self._about), newlines=True)]
        if self._typing:
            lines.append(Content("You are typing: letters and ? go into the field. Tab leaves it."))
        for place in dict.fromkeys((*self._places, EVERYWHERE)):
            lines += [Content(""), Content.styled(_NAMES.get(place, "on this screen"), "bold")]
            for command in commands_of(place):
                keys = shown_keys(command, self._about.rashomon.keys)
                first, *more = wrap(command.description, _WIDTH)
                lines.append(
                    Content.styled(f" {keys:<12}", RIGHT) + Content(f"{command.title:<17}") + Content.styled(first, DIM)
                )
                lines += [Content.styled(f"{'':<30}{line}", DIM) for line in more]
        return Content("\n").join(lines)


def _title(screen: RashomonScreen) -> str:
    from app.tui.screens import SCREENS

    entry = SCREENS.get(screen.name_)
    return entry.title if entry is not None else screen.name_


def _about(screen: Widget) -> str:
    """What a screen is for: the first paragraph of its class's documentation."""
    return inspect.cleandoc(type(screen).__doc__ or "").partition("\n\n")[0].replace("\n", " ")
