"""Footer: one line with the keys that work now, and in large terminals a line above with the screens.

Textual's own Footer has a widget for each key, so that every change costs a layout.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from app.tui.hostile_text import sanitize
from app.tui.key_commands import COMMANDS, optional_footer_ids

_COMMANDS = {command.id: command for command in COMMANDS}
_PALETTE = "everywhere.command_palette"
_SCREENS = [command.id for command in COMMANDS if command.action.startswith("app.go(") and command.keys[0].isdigit()]
"""The commands that open a screen by a digit."""
_TITLE_LIMIT = 40
_CHARACTERS = {"slash": "/", "minus": "-", "plus": "+"} | {digit: digit for digit in string.digits}
"""Characters of keys that a field takes as text, though they belong to commands elsewhere."""
_Key = tuple[str, str, str, bool]
"""Key, its name, its command, and True if it is enabled."""


def _width(keys: Sequence[_Key], gap: int) -> int:
    return sum(cell_len(f" {name} {title}") + gap for _, name, title, _ in keys)


def _pressable(screen: Screen[Any]) -> Iterator[tuple[Binding, bool]]:
    """Yield the active bindings, and whether they are enabled, without those whose key the focused widget types."""
    for _, binding, enabled, _ in screen.active_bindings.values():
        character = _CHARACTERS.get(binding.key)
        if not (character and screen.focused is not None and screen.focused.check_consume_key(binding.key, character)):
            yield binding, enabled


class KeysLine(Widget):
    """The keys that work now with their commands; a click presses the key.

    The commands of :func:`optional_footer_ids` follow as far as there is room, then the digits that open screens; the gaps
    become narrower if that makes room for these. Where the line is two cells high, the screens are named in its first.
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
        self._back: _Key | None = None
        """The key to the previous screen."""
        self._screens: tuple[_Key, ...] = ()
        self._digits: tuple[_Key, ...] = ()
        """The digits of the screens as a single key, which lists all commands; empty if a digit does something else now."""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def _bindings_changed(self, screen: Screen[Any]) -> None:
        """Read the active bindings; of several for one action, the first is displayed."""
        if not (screen.app.app_focus and self.is_attached and screen is self.screen):
            return
        required: dict[str, _Key] = {}
        optional: dict[str, _Key] = {}
        screens: dict[str, _Key] = {}
        palette = ""
        optional_ids = set(optional_footer_ids(getattr(screen, "name_", "")))
        if screen in screen.app.screen_stack[:2]:  # there is nothing to go back to
            optional_ids.discard("everywhere.close")
        for binding, enabled in _pressable(screen):
            if binding.id == _PALETTE:
                palette = palette or binding.key
            elif binding.id in _SCREENS:
                screens.setdefault(binding.id, self._key(binding, binding.description, enabled))
            keys = required if binding.show else optional if binding.id in optional_ids else None
            title = self._title(binding)
            if keys is not None and title is not None and binding.action not in keys:
                keys[binding.action] = self._key(binding, title, enabled)
        self._required, self._optional = tuple(required.values()), tuple(optional.values())
        self._back = optional.get(_COMMANDS["everywhere.close"].action)
        self._screens = tuple(screens[name] for name in _SCREENS if name in screens)
        all_digits = {key for key, *_ in self._screens} == set(string.digits)
        self._digits = ((palette, "0-9", "Screens", True),) if all_digits and palette else ()
        self._fill()

    def _key(self, binding: Binding, title: str, enabled: bool) -> _Key:
        return binding.key, self.app.get_key_display(binding), title, enabled

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
        """Display the required keys, and others as far as they fit: the digits go before the key to the previous screen."""
        room, keys = self.size.width, list(self._required)
        for key in self._optional:
            if _width([*keys, key], 1) <= room:
                keys.append(key)
        digits = list(self._digits) if self.size.height < 2 else []
        back = [key for key in keys if key is self._back]
        others = [key for key in keys if key is not self._back]
        self.keys = next(
            tuple(line)
            for line, gap in (([*others, *back, *digits], 0), ([*others, *digits], 0), (keys, 1))
            if _width(line, gap) <= room or line is keys
        )
        self.refresh()

    def _placed(self, y: int) -> Iterator[tuple[int, _Key]]:
        """Yield the keys of a line, each with the cell after it; gaps are one cell wide if there is no room for two."""
        keys = self._screens if y < self.size.height - 1 else self.keys
        gap = 1 if _width(keys, 1) <= self.size.width + 1 else 0
        end = 0
        for key in keys:
            end += _width([key], gap)
            yield end, key

    def render_line(self, y: int) -> Strip:
        base = self.rich_style
        key_style, description_style = (
            base + self.get_component_rich_style(name, partial=True) for name in ("keys--key", "keys--description")
        )
        dim = Style(dim=True)
        segments: list[Segment] = []
        start = 0
        for end, (_, name, description, enabled) in self._placed(y):
            segments.append(Segment(f" {name} ", key_style if enabled else key_style + dim))
            text = description + " " * (end - start - cell_len(f" {name} {description}"))
            segments.append(Segment(text, description_style if enabled else description_style + dim))
            start = end
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        for end, (key, _, _, enabled) in self._placed(event.y):
            if event.x < end:
                if enabled:
                    self.app.simulate_key(key)
                else:
                    self.app.bell()
                return
