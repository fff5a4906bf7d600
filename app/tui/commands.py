"""Every command of the interface, once: the keys, the footer, the palette, the help page and the user's keymap are made of it.

To add one: a line in ``COMMANDS``, and a method ``action_NAME`` on the screen (or on the app, for ``where="everywhere"``).
A screen takes its keys by ``BINDINGS = bindings("its name")``.
"""

from __future__ import annotations

from typing import NamedTuple

from textual.binding import Binding, BindingType

EVERYWHERE = "everywhere"


class Command(NamedTuple):
    """Something a key does.

    ``id`` is what the user's keymap names it by: ``where.action``. ``keys`` as Textual writes them, with commas between.
    ``where`` is a screen's name, a widget's name, or "everywhere". ``footer`` commands stand in the footer: five at most a
    screen. ``palette`` commands stand in the palette.
    """

    id: str
    keys: str
    title: str
    description: str
    footer: bool = False
    palette: bool = True
    priority: bool = False

    @property
    def where(self) -> str:
        return self.id.partition(".")[0]

    @property
    def action(self) -> str:
        """The action as Textual names it: ``open`` for ``runs.open``, ``go('live')`` for ``everywhere.go.live``."""
        name, _, argument = self.id.partition(".")[2].partition(".")
        action = f"{name}({argument!r})" if argument else name
        return f"app.{action}" if self.where == EVERYWHERE else action


COMMANDS: tuple[Command, ...] = (
    # everywhere
    Command("everywhere.command_palette", "ctrl+p", "Commands", "Find a command by its name.", palette=False),
    Command("everywhere.leave", "ctrl+q", "Quit", "Leave; runs that go on are asked about.", priority=True),
    Command("everywhere.back", "escape", "Back", "Back to where you came from.", palette=False),
    Command("everywhere.go.runs", "1", "Runs", "All runs of the workspace."),
    Command("everywhere.help", "question_mark,f1", "Help", "What the keys do here.", footer=True),
    Command("everywhere.go.settings", "f2", "Settings", "Colours, pictures, keys and folders."),
    Command("everywhere.go.doctor", "f3", "Doctor", "What works on this machine, and how to mend what does not."),
    # table (a widget: every VirtualTable)
    Command("table.down", "down,j", "Down", "The next row.", palette=False),
    Command("table.up", "up,k", "Up", "The row before.", palette=False),
    Command("table.page_down", "pagedown", "Page down", "A page further.", palette=False),
    Command("table.page_up", "pageup", "Page up", "A page back.", palette=False),
    Command("table.top", "home,g", "Top", "The first row.", palette=False),
    Command("table.bottom", "end,G", "Bottom", "The last row.", palette=False),
    Command("table.left", "left", "Left", "Scroll to the left.", palette=False),
    Command("table.right", "right", "Right", "Scroll to the right.", palette=False),
    Command("table.select", "enter", "Open", "Open the row.", palette=False),
    # runs
    Command("runs.filter", "slash", "Filter", "Show only runs that hold these words.", footer=True),
    # live
    # samples
    # label
    # new
    Command("everywhere.go.new", "ctrl+n", "New run", "Put a new run together."),
    Command("new.section.1", "ctrl+n", "Next part", "To the next part of the form.", footer=True, palette=False),
    Command("new.section.-1", "ctrl+b", "Part before", "To the part before.", palette=False),
    Command("new.start", "ctrl+r", "Start", "Start the run, or go on with it.", footer=True),
    Command("new.save", "ctrl+s", "Save", "Save it as a spec file for `rashomon --batch`.", footer=True),
    Command("new.copy", "ctrl+y", "Copy command", "Copy the command line that means the same.", footer=True),
    Command("choice.tick", "space", "Choose", "Choose the row, or no more.", palette=False),
    Command("choice.tick_group", "a", "All or none", "All of this kind, or none.", palette=False),
    Command("preview.next", "n,right", "Next instance", "The next instance's prompt.", palette=False),
    Command("preview.previous", "N,left", "Instance before", "The prompt of the instance before.", palette=False),
    # settings
    Command("settings.copy", "y", "Copy", "Copy the name of the settings file.", footer=True),
    # doctor
    Command("doctor.again", "r", "Again", "Examine the machine again.", footer=True),
    Command("doctor.copy", "y", "Copy", "Copy what was found.", footer=True),
    # compare
    # tables
    # export
)


def bindings(where: str) -> list[BindingType]:
    """The bindings of a screen or widget, for its ``BINDINGS``; "everywhere" are the app's."""
    return [
        Binding(
            command.keys,
            command.action,
            command.title,
            show=command.footer,
            priority=command.priority,
            id=command.id,
        )
        for command in COMMANDS
        if command.where == where
    ]


def commands_of(*where: str) -> list[Command]:
    """The commands of these places, in the order of the registry."""
    return [command for command in COMMANDS if command.where in where]
