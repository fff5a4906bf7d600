"""Registry of commands, the single source of the keys, the footer, the palette, the help page and the user's keymap.

To add a command, add a line to ``COMMANDS``, and a method ``action_NAME`` to the screen (to the app for "everywhere").
A screen gets its keys by ``BINDINGS = bindings("its name")``.
"""

from __future__ import annotations

from typing import NamedTuple

from textual.binding import Binding, BindingType

EVERYWHERE = "everywhere"


class Command(NamedTuple):
    """An action bound to keys.

    Attributes:
        id: ``where.action``, the name in the user's keymap; ``where`` is a screen, a widget or "everywhere".
        keys: The default keys as Textual writes them, separated by commas.
        title: The name in the footer, the palette and the help page.
        description: One sentence for the palette and the help page.
        footer: Listed in the footer of its screen, which has room for five.
        palette: Listed in the palette.
        priority: Handled before the widget in focus sees the key.
        optional_in: The screens whose footers list it too if there is room, separated by commas; "*" for all of them.
    """

    id: str
    keys: str
    title: str
    description: str
    footer: bool = False
    palette: bool = True
    priority: bool = False
    optional_in: str = ""

    @property
    def where(self) -> str:
        """The scope: a screen's name, a widget's name, or "everywhere"."""
        return self.id.partition(".")[0]

    @property
    def action(self) -> str:
        """The action's name for Textual: ``open`` for ``runs.open``, ``go('live')`` for ``everywhere.go.live``."""
        name, _, argument = self.id.partition(".")[2].partition(".")
        action = f"{name}({argument!r})" if argument else name
        return f"app.{action}" if self.where == EVERYWHERE else action


COMMANDS: tuple[Command, ...] = (
    # everywhere
    Command("everywhere.command_palette", "ctrl+p,colon", "Commands", "Find a command by name.", palette=False),
    Command(
        "everywhere.leave",
        "ctrl+q",
        "Quit",
        "Quit; asks what to do with active runs.",
        priority=True,
        optional_in="runs",
    ),
    Command("everywhere.back", "escape", "Back", "Return to the previous screen.", palette=False),
    Command(
        "everywhere.close",
        "q",
        "Back",
        "Return to the previous screen; on the first one, quit.",
        palette=False,
        optional_in="*",
    ),
    Command("everywhere.go.runs", "1", "Runs", "All runs of the workspace."),
    Command("everywhere.go.live", "2", "Live run", "Progress of the run on display or under the cursor."),
    Command("everywhere.go.samples", "3", "Samples", "The answers of the run on display or under the cursor."),
    Command("everywhere.go.tables", "4", "Tables", "The tables of the marked runs, or of this run."),
    Command("everywhere.go.compare", "5", "Compare", "Compare the marked runs."),
    Command("everywhere.go.label", "6", "Label", "Label a blind sample of the run's answers."),
    Command("everywhere.help", "question_mark,f1", "Help", "List the keys of this screen.", footer=True),
    Command("everywhere.go.settings", "7,f2", "Settings", "Theme, pictures, keys and folders."),
    Command("everywhere.go.rows", "8,f4", "Your rows", "Check a table of your own and build CMC-Bench from it."),
    Command("everywhere.go.doctor", "9,f3", "Doctor", "Check this machine, and how to fix what does not work."),
    Command("everywhere.go.review", "0,f5", "Review", "Review the rows of a build: accept, reject or fix."),
    Command("everywhere.go.fetch", "f6", "Fetch", "Fetch models and data, build benchmarks, adopt runs."),
    Command("everywhere.go.answer", "f7", "Answer", "Answer a benchmark's questions, for a human baseline."),
    Command(
        "everywhere.go.vary", "f9", "Vary", "Repeat a build's examples: blur, sources, order, k passages and others."
    ),
    Command("everywhere.go.trainings", "f8", "Trainings", "Trainings of adapters, with their loss curves."),
    Command("everywhere.go.sets", "f10", "Sets", "Question sets: every model tried on one, and a new one."),
    Command(
        "everywhere.page",
        "W",
        "Page",
        "Open the page of this answer, or of these runs, in the browser.",
        optional_in="live,samples,compare,flipped,answers",
    ),
    # table (a widget: every VirtualTable)
    Command("table.down", "down,j", "Down", "The next row.", palette=False),
    Command("table.up", "up,k", "Up", "The previous row.", palette=False),
    Command("table.page_down", "pagedown", "Page down", "One page down.", palette=False),
    Command("table.page_up", "pageup", "Page up", "One page up.", palette=False),
    Command("table.top", "home,g", "Top", "The first row.", palette=False),
    Command("table.bottom", "end,G", "Bottom", "The last row.", palette=False),
    Command("table.left", "left", "Left", "Scroll to the left.", palette=False),
    Command("table.right", "right", "Right", "Scroll to the right.", palette=False),
    Command(
        "table.select",
        "enter",
        "Open",
        "Open the row.",
        palette=False,
        optional_in="runs,live,samples,compare,flipped,fetch",
    ),
    # runs
    Command("runs.filter", "slash", "Filter", "Show only runs that contain these words.", footer=True),
    Command("runs.all", "escape", "All", "Clear the filter and show all runs.", palette=False),
    Command("runs.mark", "space", "Mark", "Mark the run to compare, export or delete it with others.", footer=True),
    Command("runs.compare", "c", "Compare", "Compare the marked runs.", footer=True),
    Command("runs.export", "e", "Export", "Write a report, tables and samples of the marked runs, or of this run."),
    Command("runs.samples", "s", "Samples", "Browse the answers of this run."),
    Command("runs.watch", "l", "Watch", "Follow the progress of this run."),
    Command(
        "runs.baselines",
        "B",
        "Baselines",
        "Make baselines of this run's answers to each source alone; asks first.",
    ),
    Command("runs.resume", "R", "Resume", "Resume an unfinished or paused run; asks first."),
    Command("runs.pause", "p", "Pause", "Pause a run, or resume a paused one."),
    Command("runs.stop", "x", "Stop", "Stop a run after the next answer, or its batch; asks first."),
    Command(
        "runs.adopt",
        "a",
        "Adopt",
        "Take over a run made on another machine; shows first what it would use.",
    ),
    Command("runs.delete", "d,delete", "Delete", "Delete the marked runs, or this run; asks first."),
    Command("runs.undelete", "u", "Undo delete", "Restore the run that was deleted last.", footer=True),
    Command("runs.sort", "S", "Sort", "Order the runs by the next column."),
    Command("runs.reverse", "I", "Invert", "Invert the order of the runs."),
    Command("runs.group", "b", "Group", "Group the runs by benchmark, or list them all."),
    Command("runs.rename", "r", "Title", "Give the run a title, which is listed beside its name."),
    Command("runs.demo", "D", "Demo", "Open the demo's runs; run the demo first if there are none."),
    Command("runs.workspace", "o", "Workspace", "Open another folder, or the demo's workspace."),
    # live
    Command("live.pause", "p", "Pause", "Pause the run, or resume it.", footer=True),
    Command("live.stop", "x", "Stop", "Stop the run after the next answer, or its batch; asks first.", footer=True),
    Command("live.resume", "R", "Resume", "Resume the run; asks first.", footer=True),
    Command("live.log", "L", "Log", "Switch between the worker's log and the newest answer.", footer=True),
    Command("live.samples", "s", "Samples", "Browse the answers of this run.", optional_in="live"),
    # trainings
    Command("trainings.new", "n", "New", "Start a training.", footer=True),
    Command("trainings.stop", "x", "Stop", "Stop the training at a checkpoint; asks first.", footer=True),
    Command(
        "trainings.resume", "R", "Resume", "Resume the training from its last checkpoint; asks first.", footer=True
    ),
    Command("trainings.copy", "y", "Copy", "Copy the path of the adapter.", footer=True),
    # train
    Command("train.start", "ctrl+r", "Train", "Estimate the memory, and train; asks first.", footer=True),
    Command("train.choose", "ctrl+o", "Choose", "Choose a fetched model, or a training set.", footer=True),
    Command("train.copy", "ctrl+y", "Copy command", "Copy the equivalent command line.", optional_in="train"),
    # samples
    Command(
        "samples.filter", "slash", "Filter", "Filter answers: is:wrong label:TEXT condition:NAME words.", footer=True
    ),
    Command(
        "samples.next", "n", "Next wrong", "The next answer that is wrong or on which judges disagree.", footer=True
    ),
    Command(
        "samples.previous", "N", "Previous wrong", "The previous answer that is wrong or on which judges disagree."
    ),
    Command("samples.override", "o", "Override", "Give the answer another label, with a reason.", footer=True),
    Command("samples.undo", "u", "Undo", "Undo the last override."),
    Command(
        "samples.outside",
        "v",
        "Open media",
        "Open the media in the system's viewer, one by one.",
        optional_in="samples",
    ),
    Command("samples.copy", "y", "Copy", "Copy the answer.", optional_in="samples"),
    Command("samples.copy_record", "Y", "Copy all", "Copy the full record as JSON."),
    Command("samples.more", "t", "Full text", "Show or hide reasoning, raw replies and long texts."),
    Command("samples.sibling.next", "right_square_bracket", "Next sibling", "The next condition of this example."),
    Command(
        "samples.sibling.previous", "left_square_bracket", "Previous sibling", "The previous condition of this example."
    ),
    Command("samples.zoom", "z", "Zoom", "Show the media as large as the terminal allows.", footer=True),
    Command("samples.switch", "tab,shift+tab", "List or answer", "Move between the list and the answer."),
    Command("samples.step.next", "j", "Next answer", "The next answer of the list.", palette=False),
    Command("samples.step.previous", "k", "Previous answer", "The previous answer of the list.", palette=False),
    Command("samples.back", "escape", "Back", "Return to the list, or to the previous screen.", palette=False),
    # zoom
    Command("zoom.close", "z,ctrl+z", "Back", "Return from the picture.", footer=True),
    Command("zoom.closer", "plus,equals_sign", "Closer", "Enlarge the middle of the picture.", footer=True),
    Command("zoom.wider", "minus,underscore", "Wider", "Show more of the picture.", footer=True),
    Command("zoom.next", "n,right_square_bracket", "Next", "The next medium.", footer=True),
    Command("zoom.previous", "N,left_square_bracket", "Previous", "The previous medium.", footer=True),
    Command("zoom.whole", "0", "Whole", "Show the whole picture.", optional_in="zoom"),
    Command("zoom.move.left", "left,h", "Left", "Move to the left.", palette=False),
    Command("zoom.move.right", "right,l", "Right", "Move to the right.", palette=False),
    Command("zoom.move.up", "up,k", "Up", "Move up.", palette=False),
    Command("zoom.move.down", "down,j", "Down", "Move down.", palette=False),
    Command("zoom.outside", "v", "Open media", "Open the medium in the system's viewer.", optional_in="zoom"),
    Command("zoom.back", "escape", "Back", "Return from the picture.", palette=False),
    # label
    *(
        Command(f"label.give.{n}", str(n % 10), f"Label {n}", "Give the answer this label.", footer=True, palette=False)
        for n in range(1, 11)
    ),
    Command("label.skip", "space", "Skip", "Skip an answer that you cannot label.", footer=True),
    Command(
        "label.sample", "n", "Sample", "Leave out the undecided answers, and go on with the random sample.", footer=True
    ),
    Command("label.undo", "u", "Undo", "Undo the last label.", footer=True),
    # review
    Command("review.accept", "a", "Accept", "Accept the row.", footer=True),
    Command("review.reject", "r", "Reject", "Reject the row, with a reason.", footer=True),
    Command("review.fix", "f", "Fix", "Correct texts of the row.", footer=True),
    Command(
        "review.media", "v", "Open media", "Open the media in the system's viewer, one by one.", optional_in="review"
    ),
    Command("review.zoom", "z", "Zoom", "Show the media as large as the terminal allows.", footer=True),
    Command("review.undo", "u", "Undo", "Undo your last decision.", footer=True),
    Command("review.choose", "o", "Choose", "Choose the build to review."),
    Command("review.skip", "space", "Skip", "Leave the row undecided for now."),
    Command("review.level", "l", "Level", "Assign a difficulty level with the decision."),
    Command("review.adjudicate", "D", "Adjudicate", "Decide where reviewers disagree, or review again."),
    # answer
    Command("answer.media", "ctrl+o", "Open media", "Open the media in the system's viewer, one by one.", footer=True),
    Command(
        "answer.zoom", "ctrl+z", "Zoom", "Show the media as large as the terminal allows.", footer=True, priority=True
    ),
    Command("answer.choose", "ctrl+b", "Choose", "Choose the benchmark to answer."),
    Command("answer.skip", "ctrl+s", "Skip", "Answer the question later.", footer=True, priority=True),
    # new
    Command("everywhere.go.new", "ctrl+n", "New run", "Configure and start a new run.", optional_in="runs"),
    Command(
        "new.section.1",
        "ctrl+n,right_square_bracket",
        "Section",
        "The next section of the form.",
        footer=True,
        palette=False,
    ),
    Command(
        "new.section.-1",
        "ctrl+b,left_square_bracket",
        "Previous section",
        "The previous section of the form.",
        palette=False,
    ),
    Command("new.start", "ctrl+r", "Start", "Start the run, or resume it; asks first.", footer=True),
    Command("new.save", "ctrl+s", "Save", "Save as a spec file for `rashomon --batch`.", footer=True),
    Command("new.paper", "ctrl+t", "Paper", "Fill in the setup of the benchmark's paper.", footer=True),
    Command("new.fetch", "f", "Fetch", "Fetch models and data, and build benchmarks.", footer=True),
    Command("new.copy", "ctrl+y", "Copy command", "Copy the equivalent command line.", optional_in="new"),
    Command("choice.tick", "space", "Select", "Select or deselect the row.", palette=False, optional_in="new,settings"),
    Command("choice.tick_group", "a", "All or none", "Select all rows of this kind, or none.", palette=False),
    Command("preview.next", "n,right", "Next instance", "The prompt of the next instance.", palette=False),
    Command("preview.previous", "N,left", "Previous instance", "The prompt of the previous instance.", palette=False),
    # rows
    Command("rows.build", "b", "Build", "Build the benchmark from the valid rows.", footer=True),
    Command("rows.again", "r", "Check again", "Read the table again.", footer=True),
    Command("rows.wrong", "w", "Next invalid", "The next invalid row.", footer=True),
    Command("rows.next", "n", "Next condition", "The next condition of this row.", footer=True),
    Command("rows.previous", "N", "Previous condition", "The previous condition of this row."),
    # sets
    Command("sets.try", "t", "Try a model", "Ask a model this set, beside the incumbent; asks first.", footer=True),
    Command("sets.against", "a", "Incumbent", "Choose the model to compare with, or the best so far.", footer=True),
    Command("sets.intervals", "i", "Intervals", "Show or hide confidence intervals."),
    Command("sets.notes", "N", "Notes", "Unfold or fold the notes under the table."),
    Command("sets.again", "r", "Refresh", "Read the sets and their runs again.", footer=True),
    # fetch
    Command("fetch.model", "m", "Other model", "Fetch a model that is not listed.", footer=True),
    Command("fetch.adopt", "a", "Adopt run", "Adopt a run of another machine.", footer=True),
    Command("fetch.again", "r", "Refresh", "Read again what is fetched and built.", footer=True),
    Command("fetch.vary", "v", "Vary", "Repeat the examples of this benchmark's build under levels.", footer=True),
    # vary
    Command("vary.build", "ctrl+r", "Build", "Count the calls, and build; asks first.", footer=True),
    Command("vary.section", "ctrl+n", "Factors, passages", "Switch between factors and k passages.", footer=True),
    Command("vary.choose", "ctrl+o", "Builds", "Choose one of the workspace's builds.", footer=True),
    Command("vary.copy", "ctrl+y", "Copy command", "Copy the equivalent command line.", optional_in="vary"),
    # settings
    Command("settings.copy", "y", "Copy", "Copy the path of the settings file.", footer=True),
    # doctor
    Command("doctor.again", "r", "Check again", "Check the machine again.", footer=True),
    Command("doctor.copy", "y", "Copy", "Copy the results.", footer=True),
    # matrix (a widget: the flips of Compare)
    Command("matrix.move.up", "up,k", "Up", "The row above.", palette=False),
    Command("matrix.move.down", "down,j", "Down", "The row below.", palette=False),
    Command("matrix.move.left", "left,h", "Left", "The column to the left.", palette=False),
    Command("matrix.move.right", "right,l", "Right", "The column to the right.", palette=False),
    Command("matrix.select", "enter", "Open", "List the instances behind the cell.", palette=False),
    # compare
    Command("compare.next", "t,right_square_bracket", "Next", "The next section of the comparison.", footer=True),
    Command("compare.previous", "T,left_square_bracket", "Previous", "The previous section."),
    Command("compare.flips", "f", "Flips", "List the answers whose label differs, or leave them out.", footer=True),
    Command(
        "compare.texts", "c", "Texts", "List the answers whose text alone differs, or leave them out.", footer=True
    ),
    Command("compare.effect", "x", "Lost, gained", "List the answers lost, those gained, or none of both."),
    Command("compare.baseline", "b", "Baseline", "Choose the run that the others are compared to.", footer=True),
    Command("compare.pair", "n", "Next run", "Compare the next run with the baseline.", footer=True),
    Command("compare.zoom", "z", "Zoom", "Show the media of the answer as large as the terminal allows.", footer=True),
    Command("compare.published", "p", "Paper", "Choose the paper's rows.", optional_in="compare"),
    Command("compare.wider", "plus,equals_sign", "Margin +", "Widen the margin of the recommendation."),
    Command("compare.narrower", "minus", "Margin -", "Narrow the margin of the recommendation."),
    Command("compare.margin", "m", "Margin", "Enter the margin of the recommendation.", optional_in="compare"),
    Command("compare.costs", "u", "Costs", "Enter the costs of mistakes, and limits on memory, time and disk."),
    Command("compare.intervals", "i", "Intervals", "Show or hide confidence intervals."),
    Command("compare.notes", "N", "Notes", "Unfold or fold the notes under the table."),
    Command("compare.judge", "w", "Judge", "Choose the judge whose labels count.", optional_in="compare"),
    Command("compare.again", "r", "Refresh", "Compute the results again if a run has changed."),
    Command("compare.copy", "y", "Copy table", "Copy the table on display as LaTeX, Markdown or CSV."),
    Command("compare.export", "e", "Export", "Write tables, figures and samples of these runs to files."),
    # flipped (the answers of a cell of the flips)
    Command("flipped.effect", "x", "Lost, gained", "List the answers lost, those gained, or all.", footer=True),
    # answers (one instance in several runs)
    Command("answers.next", "n", "Next", "The next instance of the list.", footer=True),
    Command("answers.previous", "N", "Previous", "The previous instance of the list.", footer=True),
    Command("answers.zoom", "z", "Zoom", "Show the media as large as the terminal allows.", footer=True),
    # tables
    Command("tables.next", "t,right_square_bracket", "Next", "The next table.", footer=True),
    Command("tables.previous", "T,left_square_bracket", "Previous", "The previous table."),
    Command("tables.list", "l", "List", "Choose a table by name.", optional_in="tables"),
    Command("tables.samples", "s", "Samples", "Browse the answers of one of these runs."),
    Command("tables.published", "p", "Paper", "Show or hide the paper's rows.", footer=True),
    Command("tables.intervals", "i", "Intervals", "Show or hide confidence intervals.", footer=True),
    Command("tables.notes", "N", "Notes", "Unfold or fold the notes under the table."),
    Command("tables.judge", "w", "Judge", "Choose the judge whose labels count.", optional_in="tables"),
    Command("tables.again", "r", "Refresh", "Compute the results again if a run has changed."),
    Command("tables.copy", "y", "Copy", "Copy this table alone as LaTeX, Markdown or CSV.", footer=True),
    Command("tables.export", "e", "Export", "Write tables, figures and samples of these runs to files.", footer=True),
    # export
    Command("export.write", "w", "Write", "Write the selected formats.", footer=True),
)


def bindings(where: str) -> list[BindingType]:
    """Return the bindings of a screen or widget, for its ``BINDINGS``; those of "everywhere" belong to the app."""
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


def optional_footer_ids(where: str) -> list[str]:
    """Return the ids of the commands that a screen's footer lists if there is room."""
    return [command.id for command in COMMANDS if where and {where, "*"} & set(command.optional_in.split(","))]


def commands_of(*where: str) -> list[Command]:
    """Return the commands of these scopes, in the order of the registry."""
    return [command for command in COMMANDS if command.where in where]
