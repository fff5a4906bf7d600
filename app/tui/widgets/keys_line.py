"""Footer: one line with the keys that work now.

Textual's own Footer has a widget for each key, so that every change costs a layout.
"""

from __future__ import annotations

from typing import Any, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from app.tui.commands import COMMANDS, optional_footer_ids
from app.tui.hostile_text import sanitize

_COMMANDS = {command.id: command for command in COMMANDS}
_TITLE_LIMIT = 40
_CHARACTERS = {"slash": "/", "minus": "-", "plus": "+"}
"""Characters of keys that Textual does not know: it takes them for commands while a field takes them as text."""
_Key = tuple[str, str, str, bool]
"""Key, its name, its command, and True if it is enabled."""


def _width(key: _Key) -> int:
    return cell_len(f" {key[1]} {key[2]} ")


class KeysLine(Widget):
    """A line of keys and their commands; a click presses the key.

    The commands of :func:`optional_footer_ids` follow as far as there is room.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key", "keys--description"}

    def __init__(self) -> None:
        super().__init__()
        self.keys: tuple[_Key, ...] = ()
        """The keys on display."""
        self._required: tuple[_Key, ...] = ()
        self._optional: tuple[_Key, ...] = ()
        """The keys displayed if there is room."""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def _bindings_changed(self, screen: Screen[Any]) -> None:
        """Read the active bindings; of several for one action, the first is displayed."""
        if not (screen.app.app_focus and self.is_attached and screen is self.screen):
            return
        required: dict[str, _Key] = {}
        optional: dict[str, _Key] = {}
        optional_ids = set(optional_footer_ids(getattr(screen, "name_", "")))
        if screen in screen.app.screen_stack[:2]:  # there is nothing to go back to
            optional_ids.discard("everywhere.close")
        for _, binding, enabled, _ in screen.active_bindings.values():
            character = _CHARACTERS.get(binding.key)
            if character and screen.focused is not None and screen.focused.check_consume_key(binding.key, character):
                continue
            keys = required if binding.show else optional if binding.id in optional_ids else None
            title = self._title(binding)
            if keys is not None and title is not None and binding.action not in keys:
                keys[binding.action] = (binding.key, self.app.get_key_display(binding), title, enabled)
        self._required, self._optional = tuple(required.values()), tuple(optional.values())
        self._fill()

    def _title(self, binding: Binding) -> str | None:
        """Return the title of a key's command on this screen; None if it is not available."""
        describe = getattr(self.screen, "describe", None)
        command = _COMMANDS.get(binding.id or "")
        if describe is None or command is None:
            return binding.description
        title: str | None = describe(command)
        return None if title is None else sanitize(title, limit=_TITLE_LIMIT)

    def on_resize(self) -> None:
        self._fill()

    def _fill(self) -> None:
        """Display the required keys, and optional ones as far as they fit."""
        keys = list(self._required)
        room = self.size.width - sum(map(_width, keys))
        for key in self._optional:
            room -= _width(key)
            if room >= 0:
                keys.append(key)
        if tuple(keys) != self.keys:
            self.keys = tuple(keys)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        base = self.rich_style
        key_style, description_style = (
            base + self.get_component_rich_style(name, partial=True) for name in ("keys--key", "keys--description")
        )
        dim = Style(dim=True)
        segments = []
        for _, name, description, enabled in self.keys:
            segments.append(Segment(f" {name} ", key_style if enabled else key_style + dim))
            segments.append(Segment(f"{description} ", description_style if enabled else description_style + dim))
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        end = 0
        for key in self.keys:
            end += _width(key)
            if event.x < end:
                if key[3]:
                    self.app.simulate_key(key[0])
                else:
                    self.app.bell()
                return
