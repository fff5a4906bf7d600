"""Palette of commands."""

from __future__ import annotations

from contextlib import suppress

from textual.command import CommandPalette


class Palette(CommandPalette):
    """Textual's palette, which passes over a key for its list that comes before the list is laid out.

    Textual 8.2 ends the app with a KeyError there (``OptionList._move_page``).
    """

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError):
            super()._action_command_list(action)
