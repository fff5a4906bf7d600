"""KeysLine: the keys that work now, in the last line. Textual's Footer is a widget a key: each change lays all out anew."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from app.tui.commands import with_room

_Key = tuple[str, str, str, bool]
"""Key, its name, what it does, whether it works now."""


def _width(key: _Key) -> int:
    return cell_len(f" {key[1]} {key[2]} ")


class KeysLine(Widget):
    """One line of keys and what they do, of the bindings that are to be shown; a click presses the key.

    Those of :func:`with_room` follow as far as there is room.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key", "keys--does"}
    DEFAULT_CSS = """
    KeysLine { dock: bottom; height: 1; background: $panel; color: $footer-foreground; }
    KeysLine > .keys--key { color: $footer-key-foreground; background: $footer-key-background; text-style: bold; }
    KeysLine > .keys--does { color: $footer-description-foreground; background: $footer-description-background; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.keys: tuple[_Key, ...] = ()
        """What is shown."""
        self._always: tuple[_Key, ...] = ()
        self._more: tuple[_Key, ...] = ()
        """What is shown besides where there is room."""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def _bindings_changed(self, screen: Screen[Any]) -> None:
        """Take the bindings; the first of those that do the same is shown."""
        if not (screen.app.app_focus and self.is_attached and screen is self.screen):
            return
        found: dict[str, _Key] = {}
        more: dict[str, _Key] = {}
        spare = with_room(getattr(screen, "name_", ""))
        for _, binding, enabled, _ in screen.active_bindings.values():
            kept = found if binding.show else more if binding.id in spare else None
            if kept is not None and binding.action not in kept:
                kept[binding.action] = (
                    binding.key,
                    self.app.get_key_display(binding),
                    binding.description,
                    enabled,
                )
        self._always, self._more = tuple(found.values()), tuple(more.values())
        self._fill()

    def on_resize(self) -> None:
        self._fill()

    def _fill(self) -> None:
        """Show what there is room for."""
        keys = list(self._always)
        room = self.size.width - sum(map(_width, keys))
        for key in self._more:
            room -= _width(key)
            if room >= 0:
                keys.append(key)
        if tuple(keys) != self.keys:
            self.keys = tuple(keys)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        base = self.rich_style
        key_style, does_style = (
            base + self.get_component_rich_style(name, partial=True) for name in ("keys--key", "keys--does")
        )
        dim = Style(dim=True)
        segments = []
        for _, name, does, enabled in self.keys:
            segments.append(Segment(f" {name} ", key_style if enabled else key_style + dim))
            segments.append(Segment(f"{does} ", does_style if enabled else does_style + dim))
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
