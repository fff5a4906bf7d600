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
    screen. ``palette`` commands stand in the palette. ``room`` is the screen in whose footer it stands too where there is room.
    """

    id: str
    keys: str
    title: str
    description: str
    footer: bool = False
    palette: bool = True
    priority: bool = False
    room: str = ""

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
    Command(
        "everywhere.leave", "ctrl+q", "Quit", "Leave; runs that go on are asked about.", priority=True, room="runs"
    ),
    Command("everywhere.back", "escape", "Back", "Back to where you came from.", palette=False),
    Command("everywhere.go.runs", "1", "Runs", "All runs of the workspace."),
    Command("everywhere.go.live", "2", "Live run", "The run under the cursor, or shown, as it goes on."),
    Command("everywhere.go.samples", "3", "Samples", "The samples of the run under the cursor, or shown."),
    Command("everywhere.go.tables", "4", "Tables", "The tables of the marked runs, or of this one."),
    Command("everywhere.go.compare", "5", "Compare", "The marked runs side by side."),
    Command("everywhere.go.label", "6", "Label", "Label a blind sample of the run under the cursor, or shown."),
    Command("everywhere.help", "question_mark,f1", "Help", "What the keys do here.", footer=True),
    Command("everywhere.go.settings", "f2", "Settings", "Colours, pictures, keys and folders."),
    Command("everywhere.go.rows", "f4", "Your rows", "Check a table of your own rows, and build CMC-Bench from it."),
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
    Command("table.select", "enter", "Open", "Open the row.", palette=False, room="runs"),
    # runs
    Command("runs.filter", "slash", "Filter", "Show only runs that hold these words.", footer=True),
    Command("runs.all", "escape", "All", "Leave the filter and show all runs.", palette=False),
    Command("runs.mark", "space", "Mark", "Mark the run, to compare, export or delete it with others.", footer=True),
    Command("runs.compare", "c", "Compare", "The marked runs side by side.", footer=True),
    Command("runs.export", "e", "Export", "Write the marked runs', or this run's, tables and samples as files."),
    Command("runs.samples", "s", "Samples", "The answers of this run, one by one."),
    Command("runs.watch", "l", "Watch", "This run as it goes on."),
    Command("runs.resume", "R", "Resume", "Resume an unfinished or paused run; it asks first."),
    Command("runs.pause", "p", "Pause", "Have a run wait, or go on."),
    Command("runs.stop", "x", "Stop", "Stop a run at the next answer, or its batch; it asks first."),
    Command(
        "runs.adopt",
        "a",
        "Adopt",
        "Make a run that another machine made one of your own, after showing what it would use.",
    ),
    Command("runs.delete", "d,delete", "Delete", "Delete the marked runs, or this one; it asks first."),
    Command("runs.undelete", "u", "Undo delete", "Bring back the run that was deleted last.", footer=True),
    Command("runs.workspace", "o", "Workspace", "Open a demo's workspace, or the usual one again."),
    # live
    Command("live.pause", "p", "Pause", "Have the run wait, or go on.", footer=True),
    Command("live.stop", "x", "Stop", "Stop the run at the next answer, or its batch; it asks.", footer=True),
    Command("live.resume", "R", "Resume", "Resume the run; it asks first.", footer=True),
    Command("live.log", "L", "Log", "The worker's log, or the answers.", footer=True),
    Command("live.samples", "s", "Samples", "The answers of this run, one by one."),
    # samples
    Command(
        "samples.filter", "slash", "Filter", "Choose samples: is:wrong label:TEXT condition:NAME words.", footer=True
    ),
    Command(
        "samples.next", "n", "Next wrong", "The next answer that is wrong or that judges disagree on.", footer=True
    ),
    Command("samples.previous", "N", "Previous wrong", "The one before that is wrong or that judges disagree on."),
    Command("samples.override", "o", "Override", "Give the answer another label, with a reason.", footer=True),
    Command("samples.undo", "u", "Undo", "Take the last override back."),
    Command("samples.outside", "v", "Open media", "Open the sample's media outside, one after the other.", footer=True),
    Command("samples.copy", "y", "Copy", "Copy the answer.", footer=True),
    Command("samples.copy_record", "Y", "Copy all", "Copy the whole record as JSON."),
    Command("samples.more", "t", "Everything", "Show reasoning, raw replies and long texts in full, or not."),
    Command("samples.sibling.next", "right_square_bracket", "Next sibling", "The example's next condition."),
    Command("samples.sibling.previous", "left_square_bracket", "Sibling before", "The example's condition before."),
    Command("samples.back", "escape", "Back", "To the list, or to where you came from.", palette=False),
    # label
    *(
        Command(f"label.give.{n}", key, f"Label {n}", "Give the answer this label.", palette=False)
        for n, key in enumerate("asdfghjkl", 1)
    ),
    Command("label.skip", "space", "Skip", "You cannot label this one.", footer=True),
    Command("label.undo", "u", "Undo", "Take the last label back.", footer=True),
    # new
    Command("everywhere.go.new", "ctrl+n", "New run", "Put a new run together.", room="runs"),
    Command("new.section.1", "ctrl+n", "Next part", "To the next part of the form.", footer=True, palette=False),
    Command("new.section.-1", "ctrl+b", "Part before", "To the part before.", palette=False),
    Command("new.start", "ctrl+r", "Start", "Start the run, or resume it; it asks first.", footer=True),
    Command("new.save", "ctrl+s", "Save", "Save it as a spec file for `rashomon --batch`.", footer=True),
    Command("new.copy", "ctrl+y", "Copy command", "Copy the command line that means the same.", footer=True),
    Command("choice.tick", "space", "Choose", "Choose the row, or no more.", palette=False),
    Command("choice.tick_group", "a", "All or none", "All of this kind, or none.", palette=False),
    Command("preview.next", "n,right", "Next instance", "The next instance's prompt.", palette=False),
    Command("preview.previous", "N,left", "Instance before", "The prompt of the instance before.", palette=False),
    # rows
    Command("rows.build", "b", "Build", "Build the benchmark from the rows that can be used.", footer=True),
    Command("rows.again", "r", "Check again", "Read the table again.", footer=True),
    Command("rows.wrong", "w", "Next wrong", "The next row that cannot be used.", footer=True),
    Command("rows.next", "n", "Next condition", "The row's next condition.", footer=True),
    Command("rows.previous", "N", "Condition before", "The condition before."),
    # settings
    Command("settings.copy", "y", "Copy", "Copy the name of the settings file.", footer=True),
    # doctor
    Command("doctor.again", "r", "Again", "Examine the machine again.", footer=True),
    Command("doctor.copy", "y", "Copy", "Copy what was found.", footer=True),
    # matrix (a widget: the flips of Compare)
    Command("matrix.move.up", "up,k", "Up", "The row above.", palette=False),
    Command("matrix.move.down", "down,j", "Down", "The row below.", palette=False),
    Command("matrix.move.left", "left,h", "Left", "The column to the left.", palette=False),
    Command("matrix.move.right", "right,l", "Right", "The column to the right.", palette=False),
    Command("matrix.select", "enter", "Open", "List the instances behind the cell.", palette=False),
    # compare
    Command("compare.next", "t,right_square_bracket", "Next", "The next part of the comparison.", footer=True),
    Command("compare.previous", "T,left_square_bracket", "Previous", "The part before."),
    Command(
        "compare.beside", "b", "Beside", "On Flips the next run; else the paper's rows that stand beside.", footer=True
    ),
    Command("compare.wider", "plus,equals_sign", "Margin +", "Recommend with a wider margin."),
    Command("compare.narrower", "minus", "Margin -", "Recommend with a narrower margin."),
    Command("compare.margin", "m", "Margin", "Type the margin of the recommendation.", footer=True),
    Command("compare.intervals", "i", "Intervals", "Show intervals, or values alone."),
    Command("compare.judge", "w", "Whose", "Choose whose labels count.", footer=True),
    Command("compare.again", "r", "Again", "Compute again what has changed."),
    Command("compare.export", "e", "Export", "Write these runs' tables, figures and samples.", footer=True),
    # flipped (the instances behind a cell)
    # answers (one instance in several runs)
    Command("answers.next", "n", "Next", "The next instance of the list.", footer=True),
    Command("answers.previous", "N", "Previous", "The instance before.", footer=True),
    Command("answers.picture", "m", "Picture", "The next of several pictures."),
    # tables
    Command("tables.next", "t,right_square_bracket", "Next", "The next table.", footer=True),
    Command("tables.previous", "T,left_square_bracket", "Previous", "The table before."),
    Command("tables.list", "l", "List", "Choose a table by its name.", footer=True),
    Command("tables.samples", "s", "Samples", "The answers of one of these runs, one by one."),
    Command("tables.published", "p", "Paper", "Show the paper's rows, or leave them out.", footer=True),
    Command("tables.intervals", "i", "Intervals", "Show intervals, or values alone."),
    Command("tables.judge", "w", "Whose", "Choose whose labels count.", footer=True),
    Command("tables.again", "r", "Again", "Compute again what has changed."),
    Command("tables.export", "e", "Export", "Write these runs' tables, figures and samples.", footer=True),
    # export
    Command("export.write", "w", "Write", "Write the chosen formats.", footer=True),
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


def with_room(where: str) -> list[str]:
    """The ids of the commands that stand in a screen's footer where there is room."""
    return [command.id for command in COMMANDS if where and command.room == where]


def commands_of(*where: str) -> list[Command]:
    """The commands of these places, in the order of the registry."""
    return [command for command in COMMANDS if command.where in where]
