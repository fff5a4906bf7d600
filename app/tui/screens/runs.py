"""Runs: all runs of the workspace, and what can be done with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, Static

from app.report.render import cell_text
from app.report.running_accuracy import judging, overall
from app.store.throughput import duration
from app.store.trash import Trash
from app.store.workspace import DEMOS_FOLDER, Workspace
from app.tui.commands import bindings
from app.tui.confirmations import adopt_received
from app.tui.hostile_text import harmless, literal
from app.tui.screens import SCREENS
from app.tui.screens.base import RashomonScreen
from app.tui.theme import WRONG, state_look
from app.tui.widgets.bars import progress_bar
from app.tui.widgets.choose import ChoiceDialog
from app.tui.widgets.dialogs import Confirm
from app.tui.widgets.virtual_table import Cell, Column, Row, VirtualTable
from app.tui.workspace_watcher import Snapshot, WatchedRun
from benchmarks.errors import StoreError

_BAR = 8
_NAMED = 8
"""The number of runs that a question names."""
_READING = "◐ reading the runs …"
_END = 5 / 6
"""A run's name ends in quantisation, prompts and digest; on 80 columns there is room for these and the beginning."""
_NARROW = (
    Column("state", 13),
    Column("run", 0, end=_END),
    Column("done", 11, right=True),
    Column("right so far [95%]", 20, right=True),
    Column("n", 6, right=True),
)
_WIDE = (
    Column("state", 13),
    Column("run", 0, least=16, end=_END),
    Column("", _BAR),
    *_NARROW[2:],
    Column("/min", 6, right=True),
    Column("tok/s", 5, right=True),
    Column("peak GB", 7, right=True),
    Column("model", 14, end=0.5),
)
_VERY_WIDE = (*_WIDE, Column("benchmark", 16), Column("prompts", 14))


class RunsScreen(RashomonScreen):
    """All runs of the workspace, the newest first; under them all about the one under the cursor."""

    name_ = "runs"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    DEFAULT_CSS = """
    RunsScreen #filter { display: none; border: none; height: 1; padding: 0 1; background: $panel; }
    RunsScreen #filter.-shown { display: block; }
    RunsScreen #about { height: 4; padding: 0 1; background: $surface; color: $foreground; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[WatchedRun] = []
        self._offered = False
        self._demos: list[Workspace] | None = None

    def heading(self) -> Content:
        snapshot = self.rashomon.snapshot
        active = sum(run.active for run in snapshot.runs)
        count = f"{snapshot.total:,}" if snapshot.looked else f"◐ reading {len(snapshot.runs):,} of {snapshot.total:,}"
        told = f"Runs  {count} in {_place(self.rashomon.workspace)}"
        if active:
            told += f", {active} going on"
        if snapshot.device:
            told += f"; the device: {snapshot.device}"
        return literal(told)

    def body(self) -> ComposeResult:
        yield Input(placeholder="words of a run's name, state, model, benchmark, prompts; Esc: all", id="filter")
        yield VirtualTable(_NARROW, empty=_READING, id="runs")
        yield Static(id="about")

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VirtualTable))

    # --- what is shown ---------------------------------------------------------------------------

    def changed(self, snapshot: Snapshot) -> None:
        words = self.query_one("#filter", Input).value.lower().split()
        self.runs = [run for run in reversed(snapshot.runs) if all(word in _words(run) for word in words)]
        columns = self._columns()
        rows: dict[int, Row] = {}

        def page(first: int, count: int) -> Sequence[Row]:
            for number in range(first, first + count):
                if number not in rows:
                    rows[number] = _row(self.runs[number], columns)
            return [rows[number] for number in range(first, first + count)]

        table = self.query_one(VirtualTable)
        if snapshot.looked:
            table.marks &= {run.name for run in snapshot.runs}
            if not snapshot.runs and self._demos is None:
                self._demos = self.rashomon.workspace.demos()
        table.empty = self._without_rows(snapshot, bool(words))
        table.show(len(self.runs), page, keys=[run.name for run in self.runs], columns=columns)
        self.retitle()
        self._choose()
        if snapshot.looked and not self._offered:
            self._offered = True
            self._offer(_left_over(self.runs))

    def _without_rows(self, snapshot: Snapshot, filtered: bool) -> str:
        """Return what stands in the place of rows where there are none."""
        if not snapshot.looked:
            return _READING
        if filtered and snapshot.runs:
            return "no run has these words"
        if self._demos:
            names = ", ".join(demo.path.name for demo in self._demos)
            return harmless(f"no runs here; o opens the workspace of the demo ({names})")
        return "no runs yet: ctrl+n, or `rashomon demo`"

    def _columns(self) -> tuple[Column, ...]:
        width = self.size.width
        return _NARROW if width < 116 else _WIDE if width < 150 else _VERY_WIDE

    def on_resize(self, event: events.Resize) -> None:
        self.look()

    def _offer(self, runs: Sequence[WatchedRun]) -> None:
        if len(runs) == 1:
            self.rashomon.tell(f"{runs[0].name} is unfinished; R goes on with it")
        elif runs:
            self.rashomon.tell(f"{len(runs)} runs are unfinished; R goes on with the one under the cursor")

    def _choose(self) -> None:
        found = self.under_cursor()
        self.rashomon.under_cursor = tuple(run.folder for run in found)
        self.rashomon.marked = tuple(run.folder for run in self.marked())
        self.put("#about", _about(found[0]) if found else Content(""))

    @on(VirtualTable.Moved)
    def _moved(self) -> None:
        self._choose()

    def under_cursor(self) -> list[WatchedRun]:
        """The run under the cursor, if there is one."""
        place = self.query_one(VirtualTable).cursor
        return self.runs[place : place + 1]

    def marked(self) -> list[WatchedRun]:
        """The marked runs, from the first that was made."""
        marks = self.query_one(VirtualTable).marks
        return [run for run in self.rashomon.snapshot.runs if run.name in marks]

    # --- what can be done ------------------------------------------------------------------------

    @on(VirtualTable.Selected)
    def _open(self) -> None:
        for run in self.under_cursor():
            if run.summary.problem is not None:
                self.rashomon.failed(run.summary.problem)
            else:
                self.go_to("live" if run.active or run.summary.done < run.summary.total else "tables", [run])

    def go_to(self, name: str, runs: Sequence[WatchedRun]) -> None:
        """Go to a screen of these runs."""
        readable = [run.folder for run in runs if run.summary.problem is None]
        if not readable:
            self.rashomon.tell("choose a run that can be read first")
        elif name in SCREENS:
            self.rashomon.go(name, readable)

    def action_mark(self) -> None:
        self.query_one(VirtualTable).toggle_mark()
        self._choose()

    def action_compare(self) -> None:
        if len(self.marked()) < 2:
            self.rashomon.tell("mark two runs or more with space to compare them")
        else:
            self.go_to("compare", self.marked())

    def action_export(self) -> None:
        self.go_to("export", self.marked() or self.under_cursor())

    def action_samples(self) -> None:
        self.go_to("samples", self.under_cursor())

    def action_watch(self) -> None:
        self.go_to("live", self.under_cursor())

    def action_pause(self) -> None:
        for run in self.under_cursor():
            self.rashomon.pause_or_go_on(run)

    def action_resume(self) -> None:
        for run in self.under_cursor():
            self.rashomon.resume(run)

    def action_stop(self) -> None:
        for run in self.under_cursor():
            self.rashomon.stop_run(run)

    def action_adopt(self) -> None:
        for run in self.under_cursor():
            adopt_received(self, run.folder)

    def action_delete(self) -> None:
        runs = self.marked() or self.under_cursor()
        if not runs:
            return
        busy = [run.name for run in runs if run.active]
        if busy:
            self.rashomon.failed(f"{', '.join(busy)}: a process works on it; stop it with x first.")
            return
        names = [f"  {run.name}" for run in runs[:_NAMED]] + [f"  and {len(runs) - _NAMED} more"] * (len(runs) > _NAMED)
        what = f"the run {runs[0].name}" if len(runs) == 1 else "\n".join([f"{len(runs)} marked runs:", *names])
        answers = sum(run.summary.done for run in runs)
        text = f"{what}\n\n{answers:,} answers and their labels go; builds and exports stay. u brings back until you leave."
        trash = self.rashomon.trash

        def delete(sure: bool | None) -> None:
            if sure:
                self.in_thread(lambda: _delete(trash, [run.folder for run in runs]), self._deleted, group="delete")

        self.app.push_screen(Confirm("Delete?", text, yes="Delete", no="Keep"), delete)

    def _deleted(self, result: tuple[list[str], list[str]]) -> None:
        names, problems = result
        self.query_one(VirtualTable).marks -= set(names)
        self.refresh_bindings()
        if names:
            self.rashomon.tell(f"deleted: {', '.join(names)}; u brings it back until you leave")
        if problems:
            self.rashomon.failed("\n".join(problems))

    def action_undelete(self) -> None:
        """Bring back the run that was deleted last."""
        self.in_thread(self.rashomon.trash.restore, self._restored, group="delete")

    def _restored(self, folder: Path) -> None:
        self.refresh_bindings()
        self.rashomon.tell(f"{folder.name} is back")

    def action_workspace(self) -> None:
        """Open the usual workspace, or that of a demo."""
        here = self.rashomon.workspace.path
        usual = Workspace(here.parent.parent) if here.parent.name == DEMOS_FOLDER else self.rashomon.workspace
        others = {str(place.path): place for place in (usual, *usual.demos()) if place.path != here}

        def chosen(path: str | None) -> None:
            if path is not None:
                self.rashomon.open_workspace(others[path])

        if others:
            self.app.push_screen(ChoiceDialog("Which workspace?", list(others)), chosen)
        else:
            self.rashomon.tell("no demo has been run here; `rashomon demo` makes one")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self.rashomon.trash.names) if action == "undelete" else True

    # --- the filter ------------------------------------------------------------------------------

    def action_filter(self) -> None:
        typed = self.query_one("#filter", Input)
        typed.add_class("-shown")
        self.set_focus(typed)

    @on(Input.Changed, "#filter")
    def _filtered(self) -> None:
        self.changed(self.rashomon.snapshot)

    @on(Input.Submitted, "#filter")
    def _filter_taken(self) -> None:
        self.set_focus(self.query_one(VirtualTable))

    def action_all(self) -> None:
        typed = self.query_one("#filter", Input)
        typed.value = ""
        typed.remove_class("-shown")
        self.set_focus(self.query_one(VirtualTable))


def _left_over(runs: Sequence[WatchedRun]) -> list[WatchedRun]:
    """The runs to be offered for resuming; a planned one is not while others go on, which it may wait for."""
    going_on = any(run.active for run in runs)
    return [run for run in runs if run.resumable and not (going_on and run.summary.state == "planned")]


def _delete(trash: Trash, folders: Sequence[Path]) -> tuple[list[str], list[str]]:
    """Delete runs; the names of those that are deleted, and why others are not."""
    names, problems = [], []
    for folder in folders:
        try:
            trash.delete(folder)
        except StoreError as error:
            problems.append(str(error))
        else:
            names.append(folder.name)
    return names, problems


def _place(workspace: Workspace) -> str:
    """A workspace's name for the title; of a demo's, with the folder that it is in."""
    path = workspace.path
    return f"{DEMOS_FOLDER}/{path.name}" if path.parent.name == DEMOS_FOLDER else path.name


def _words(run: WatchedRun) -> str:
    spec = run.summary.spec
    told = (str(spec.get(key, "")) for key in ("benchmark", "model", "prompt_set"))
    return " ".join([run.name, run.summary.state, *told]).lower()


def _row(run: WatchedRun, columns: Sequence[Column]) -> Row:
    summary = run.summary
    look = state_look(summary.state)
    if summary.problem is not None:
        return [[(str(look), look.colour)], run.name, *[""] * (len(columns) - 2)]
    share = overall(summary)
    peak = max((p.peak_memory for p in summary.progress), default=0)
    cells: dict[str, Cell] = {
        "state": [(str(look), look.colour)],
        "run": run.name,
        "": progress_bar(summary.done, summary.total, _BAR),
        "done": f"{summary.done}/{summary.total}",
        "right so far [95%]": cell_text(share),
        "n": str(share.n),
        "/min": "-" if run.answers_per_second is None else f"{60 * run.answers_per_second:.4g}",
        "tok/s": "-" if run.tokens_per_second is None else f"{run.tokens_per_second:.0f}",
        "peak GB": f"{peak / 1e9:.2f}" if peak else "-",
        "model": str(summary.spec.get("model", "")).rpartition("/")[2],
        "benchmark": str(summary.spec.get("benchmark", "")),
        "prompts": str(summary.spec.get("prompt_set", "")),
    }
    return [cells[column.title] for column in columns]


def _about(run: WatchedRun) -> Content:
    """Four lines about a run."""
    summary, look = run.summary, state_look(run.summary.state)
    first = literal(f"{look} ", look.colour) + literal(run.name, "bold")
    if summary.problem is not None:
        return first + "\n" + literal(summary.problem, WRONG, limit=400)
    spec = summary.spec
    what = f"{spec['benchmark']}, {spec['model']}, prompts {spec['prompt_set']}, judged by {', '.join(spec['judge'])}"
    errors = sum(p.errors for p in summary.progress)
    cut = sum(p.truncated for p in summary.progress)
    facts = [f"{errors} errors"] * bool(errors) + [f"{cut} cut at the limit"] * bool(cut) + judging(summary)
    if run.seconds_left is not None:
        facts.insert(0, f"{duration(run.seconds_left)} left")
    if not summary.own:
        facts.append("received, read-only: a adopts it")
    elif run.resumable:
        facts.append("R goes on with it")
    lines = [first, literal(what), literal(", ".join(facts)), literal(summary.note, limit=300)]
    return Content("\n").join(lines)
