"""Help: what the keys do, those of the focused widget first, then the screen's, then everywhere's."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from textwrap import wrap
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from app.tui.commands import EVERYWHERE, Command, commands_of
from app.tui.hostile_text import literal
from app.tui.keymap import keys_of, shown_keys
from app.tui.screens.base import RashomonScreen
from app.tui.theme import DIM, RIGHT
from app.tui.widgets.dialogs import Dialog

_WIDTH = 40
"""Cells for a description, in a box that fits 80."""
_NAMES = {EVERYWHERE: "everywhere", "table": "in this table", "choice": "in this list", "preview": "in this prompt"}


class HelpScreen(Dialog[None]):
    """Over a screen; Esc closes it."""

    DEFAULT_CSS = """
    HelpScreen > Vertical { width: 76; max-width: 98%; height: 90%; padding: 0 1; }
    HelpScreen .heading { margin-bottom: 0; }
    HelpScreen VerticalScroll { height: 1fr; max-height: 100%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f1,question_mark", "dismiss", "Close")]

    def __init__(self, screen: RashomonScreen) -> None:
        super().__init__(Content(f"Help: {_title(screen)}"))
        self._about, self._places = screen, screen.key_help()
        self._typing = isinstance(screen.focused, Input)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.painted
            with VerticalScroll():
                yield Static(self._text())
            yield Static(Content.styled("Esc closes, arrows scroll", DIM))

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VerticalScroll))

    def _text(self) -> Content:
        # One text: a widget for each of its cells takes long to lay out.
        lines = [literal(_about(self._about), newlines=True)]
        if self._typing:
            lines.append(Content("You are typing: letters and ? go into the field. Tab leaves it."))
        taken: set[str] = set()
        for place in dict.fromkeys((*self._places, EVERYWHERE)):
            commands = [(command, self._keys(command, taken)) for command in commands_of(place)]
            lines += [Content(""), Content.styled(_NAMES.get(place, "on this screen"), "bold")]
            for command, keys in commands:
                title = self._about.describe(command)
                if keys and title is not None:
                    lines += _told(keys, title, command.description)
            taken.update(key for command, _ in commands for key in keys_of(command, self._about.rashomon.keys))
        return Content("\n").join(lines)

    def _keys(self, command: Command, taken: Collection[str]) -> str:
        """A command's keys, without those that mean something else here."""
        return shown_keys(command, self._about.rashomon.keys, but=taken)


def _told(keys: str, title: str, description: str) -> list[Content]:
    first, *more = wrap(description, _WIDTH)
    line = Content.styled(f" {keys:<12}", RIGHT) + literal(f"{title:<17}", limit=40) + Content.styled(first, DIM)
    return [line, *(Content.styled(f"{'':<30}{line}", DIM) for line in more)]


def _title(screen: RashomonScreen) -> str:
    from app.tui.screens import SCREENS

    entry = SCREENS.get(screen.name_)
    return entry.title if entry is not None else screen.name_


def _about(screen: Widget) -> str:
    """What a screen is for: the first paragraph of its class's documentation."""
    return inspect.cleandoc(type(screen).__doc__ or "").partition("\n\n")[0].replace("\n", " ")
