"""The help page: the keys of the focused widget, of the screen, and those that work everywhere."""

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

from app.tui.hostile_text import literal
from app.tui.key_commands import EVERYWHERE, Command, commands_of
from app.tui.keymap import format_keys, keys_of
from app.tui.screens import SCREENS
from app.tui.screens.base_screen import RashomonScreen
from app.tui.theme import DIM, HEADING, KEY
from app.tui.widgets.dialogs import Dialog

_WIDTH, _WIDE = 40, 80
"""The width of a description in cells: one that fits 80 columns, and one for terminals of 120 and more."""
_WIDE_TERMINAL = 120
_NAMES = {EVERYWHERE: "everywhere", "table": "in this table", "choice": "in this list", "preview": "in this prompt"}


class HelpScreen(Dialog[None]):
    """The help page of the screen underneath; Esc closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f1,question_mark", "dismiss", "Close")]

    def __init__(self, screen: RashomonScreen) -> None:
        super().__init__(Content(f"Help: {_title(screen)}"))
        self._below, self._scopes = screen, screen.key_help()
        self._typing = isinstance(screen.focused, Input)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.painted
            with VerticalScroll():
                yield Static(self._text())
            yield Static(Content.styled("Esc closes, arrows scroll", DIM))

    def on_mount(self) -> None:
        self.set_class(self._is_wide, "-wide")
        self.set_focus(self.query_one(VerticalScroll))

    @property
    def _is_wide(self) -> bool:
        return self.app.size.width >= _WIDE_TERMINAL

    def _text(self) -> Content:
        # A single text, since a widget for each of its cells takes long to lay out.
        lines = [literal(_purpose(self._below), newlines=True)]
        if self._typing:
            lines.append(Content("You are typing: letters and ? go into the field. Tab leaves it."))
        width = _WIDE if self._is_wide else _WIDTH
        taken_keys: set[str] = set()
        sections: dict[str, list[Content]] = {}
        for scope in dict.fromkeys((*self._scopes, EVERYWHERE)):  # the widget in focus takes its keys first
            commands = [(command, self._keys(command, taken_keys)) for command in commands_of(scope)]
            section = [Content(""), Content.styled(_NAMES.get(scope, "on this screen"), f"bold {HEADING}")]
            for command, keys in commands:
                title = self._below.describe(command)
                if keys and title is not None:
                    section += _entry(keys, title, f"{command.description} [{command.id}]", width)
            sections[scope] = section
            taken_keys.update(key for command, _ in commands for key in keys_of(command, self._below.rashomon.keys))
        for scope in sorted(sections, key=lambda scope: scope != self._below.name_):
            lines += sections[scope]
        return Content("\n").join(lines)

    def _keys(self, command: Command, taken: Collection[str]) -> str:
        """Return a command's keys without those that mean something else here."""
        return format_keys(command, self._below.rashomon.keys, exclude=taken)


def _entry(keys: str, title: str, description: str, width: int) -> list[Content]:
    first, *more = wrap(description, width)
    line = Content.styled(f" {keys:<12}", KEY) + literal(f"{title:<17}", limit=40) + Content.styled(first, DIM)
    return [line, *(Content.styled(f"{'':<30}{line}", DIM) for line in more)]


def _title(screen: RashomonScreen) -> str:

    entry = SCREENS.get(screen.name_)
    return entry.title if entry is not None else screen.name_


def _purpose(screen: Widget) -> str:
    """Return a screen's description, the first paragraph of its class's docstring."""
    return inspect.cleandoc(type(screen).__doc__ or "").partition("\n\n")[0].replace("\n", " ")
