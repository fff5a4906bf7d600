"""Command palette."""

from __future__ import annotations

from contextlib import suppress

from textual.command import CommandPalette


class Palette(CommandPalette):
    """Textual's palette, minus a crash: keys that arrive before its list is laid out are ignored.

    Textual 8.2 ends the app with a KeyError there (``OptionList._move_page``).
    """

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError):
            super()._action_command_list(action)
