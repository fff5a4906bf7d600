"""The Runs screen: all runs of the workspace."""

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
from app.report.running_accuracy import judging_progress, overall_accuracy
from app.report.throughput import duration
from app.store.trash import Trash
from app.store.workspace import DEMOS_FOLDER, Workspace
from app.tui.commands import bindings
from app.tui.confirmations import confirm_adoption
from app.tui.hostile_text import literal, sanitize
from app.tui.screens.base import RashomonScreen
from app.tui.theme import WRONG, state_appearance
from app.tui.widgets.bars import progress_bar
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.dialogs import Confirm
from app.tui.widgets.panel import panel
from app.tui.widgets.virtual_table import Cell, Column, Row, VirtualTable
from app.tui.workspace_watcher import WatchedRun, WorkspaceSnapshot
from benchmarks.errors import StoreError

_BAR_WIDTH = 8
_MAX_NAMED = 8
"""The number of runs that a confirmation names."""
_READING = "◐ reading the runs …"
_ACCURACY = "running acc. [95%]"
_TAIL = 5 / 6
"""The share of a long name's cells for its end: quantisation, prompts and digest, which tell runs apart."""
_NARROW = (
    Column("state", 13),
    Column("run", 0, tail=_TAIL),
    Column("done", 11, right=True),
    Column(_ACCURACY, 20, right=True),
    Column("n", 6, right=True),
)
_WIDE = (
    Column("state", 13),
    Column("run", 0, min_width=16, tail=_TAIL),
    Column("", _BAR_WIDTH),
    *_NARROW[2:],
    Column("/min", 6, right=True),
    Column("tok/s", 5, right=True),
    Column("peak GB", 7, right=True),
    Column("model", 14, tail=0.5),
)
_VERY_WIDE = (*_WIDE, Column("benchmark", 16), Column("prompts", 14))


class RunsScreen(RashomonScreen):
    """All runs of the workspace, the newest first. Details of the run under the cursor are at the bottom."""

    name_ = "runs"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[WatchedRun] = []
        self._resume_offered = False
        self._demos: list[Workspace] | None = None

    def heading(self) -> Content:
        snapshot = self.rashomon.snapshot
        active = sum(run.active for run in snapshot.runs)
        count = (
            f"{snapshot.total:,}" if snapshot.complete else f"◐ reading {len(snapshot.runs):,} of {snapshot.total:,}"
        )
        title = f"Runs  {count} in {_display_name(self.rashomon.workspace)}"
        if active:
            title += f", {active} active"
        if snapshot.device:
            title += f"; device in use by {snapshot.device}"
        return literal(title)

    def body(self) -> ComposeResult:
        yield Input(placeholder="words in name, state, model, benchmark or prompts; Esc shows all", id="filter")
        yield panel(VirtualTable(_NARROW, empty=_READING, id="runs"), "Runs")
        yield panel(Static(id="about"), "This run")

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VirtualTable))

    # --- drawing ---------------------------------------------------------------------------------

    def workspace_changed(self, snapshot: WorkspaceSnapshot) -> None:
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
        if snapshot.complete:
            table.marks &= {run.name for run in snapshot.runs}
            if not snapshot.runs and self._demos is None:
                self._demos = self.rashomon.workspace.demos()
        table.empty = self._empty_text(snapshot, bool(words))
        table.show(len(self.runs), page, keys=[run.name for run in self.runs], columns=columns)
        self.update_title()
        self._update_selection()
        if snapshot.complete and not self._resume_offered:
            self._resume_offered = True
            self._offer_resume(_resumable(self.runs))

    def _empty_text(self, snapshot: WorkspaceSnapshot, filtered: bool) -> str:
        """Return the text for an empty table."""
        if not snapshot.complete:
            return _READING
        if filtered and snapshot.runs:
            return "no run matches"
        if self._demos:
            names = ", ".join(demo.path.name for demo in self._demos)
            return sanitize(f"no runs yet; o opens the demo's workspace ({names})")
        return "no runs yet: press ctrl+n, or run `rashomon demo`"

    def _columns(self) -> tuple[Column, ...]:
        width = self.size.width
        return _NARROW if width < 116 else _WIDE if width < 150 else _VERY_WIDE

    def on_resize(self, event: events.Resize) -> None:
        self.show_snapshot()

    def _offer_resume(self, runs: Sequence[WatchedRun]) -> None:
        if len(runs) == 1:
            self.rashomon.toast(f"{runs[0].name} is unfinished; R resumes it")
        elif runs:
            self.rashomon.toast(f"{len(runs)} runs are unfinished; R resumes the one under the cursor")

    def _update_selection(self) -> None:
        """Pass the selection on to the app, and show the details of the run under the cursor."""
        runs = self.under_cursor()
        self.rashomon.under_cursor = tuple(run.folder for run in runs)
        self.rashomon.marked = tuple(run.folder for run in self.marked())
        self.update_static("#about", _about(runs[0]) if runs else Content(""))

    @on(VirtualTable.Moved)
    def _moved(self) -> None:
        self._update_selection()

    def under_cursor(self) -> list[WatchedRun]:
        """Return the run under the cursor; empty if there is none."""
        place = self.query_one(VirtualTable).cursor
        return self.runs[place : place + 1]

    def marked(self) -> list[WatchedRun]:
        """Return the marked runs, oldest first."""
        marks = self.query_one(VirtualTable).marks
        return [run for run in self.rashomon.snapshot.runs if run.name in marks]

    # --- actions ---------------------------------------------------------------------------------

    @on(VirtualTable.Selected)
    def _open(self) -> None:
        for run in self.under_cursor():
            if run.summary.problem is not None:
                self.rashomon.show_error(run.summary.problem)
            else:
                unfinished = run.active or run.summary.done < run.summary.total
                self._open_screen("live" if unfinished else "tables", [run])

    def _open_screen(self, name: str, runs: Sequence[WatchedRun]) -> None:
        """Open a screen for the readable ones of these runs."""
        readable = [run.folder for run in runs if run.summary.problem is None]
        if not readable:
            self.rashomon.toast("choose a readable run first")
        else:
            self.rashomon.open_screen(name, readable)

    def action_mark(self) -> None:
        self.query_one(VirtualTable).toggle_mark()
        self._update_selection()

    def action_compare(self) -> None:
        if len(self.marked()) < 2:
            self.rashomon.toast("mark two or more runs with space to compare them")
        else:
            self._open_screen("compare", self.marked())

    def action_export(self) -> None:
        self._open_screen("export", self.marked() or self.under_cursor())

    def action_samples(self) -> None:
        self._open_screen("samples", self.under_cursor())

    def action_watch(self) -> None:
        self._open_screen("live", self.under_cursor())

    def action_pause(self) -> None:
        for run in self.under_cursor():
            self.rashomon.pause_or_resume(run)

    def action_resume(self) -> None:
        for run in self.under_cursor():
            self.rashomon.resume(run)

    def action_stop(self) -> None:
        for run in self.under_cursor():
            self.rashomon.stop_run(run)

    def action_adopt(self) -> None:
        for run in self.under_cursor():
            confirm_adoption(self, run.folder)

    def action_delete(self) -> None:
        runs = self.marked() or self.under_cursor()
        if not runs:
            return
        busy = [run.name for run in runs if run.active]
        if busy:
            self.rashomon.show_error(f"{', '.join(busy)}: still active; stop with x first.")
            return
        names = [f"  {run.name}" for run in runs[:_MAX_NAMED]]
        names += [f"  and {len(runs) - _MAX_NAMED} more"] * (len(runs) > _MAX_NAMED)
        subject = f"the run {runs[0].name}" if len(runs) == 1 else "\n".join([f"{len(runs)} marked runs:", *names])
        answers = sum(run.summary.done for run in runs)
        text = (
            f"{subject}\n\nThis deletes {answers:,} answers and their labels; builds and exports stay. "
            "u restores until you quit."
        )
        trash = self.rashomon.trash

        def on_answer(yes: bool | None) -> None:
            if yes:
                self.in_thread(lambda: _delete(trash, [run.folder for run in runs]), self._deleted, group="delete")

        self.app.push_screen(Confirm("Delete?", text, yes="Delete", no="Keep"), on_answer)

    def _deleted(self, result: tuple[list[str], list[str]]) -> None:
        names, problems = result
        self.query_one(VirtualTable).marks -= set(names)
        self.refresh_bindings()
        if names:
            self.rashomon.toast(f"deleted: {', '.join(names)}; u restores until you quit")
        if problems:
            self.rashomon.show_error("\n".join(problems))

    def action_undelete(self) -> None:
        """Restore the run that was deleted last."""
        self.in_thread(self.rashomon.trash.restore, self._restored, group="delete")

    def _restored(self, folder: Path) -> None:
        self.refresh_bindings()
        self.rashomon.toast(f"{folder.name} is restored")

    def action_workspace(self) -> None:
        """Switch to a demo's workspace, or from there to the regular one."""
        current = self.rashomon.workspace.path
        regular = Workspace(current.parent.parent) if current.parent.name == DEMOS_FOLDER else self.rashomon.workspace
        others = {str(other.path): other for other in (regular, *regular.demos()) if other.path != current}

        def on_choice(path: str | None) -> None:
            if path is not None:
                self.rashomon.open_workspace(others[path])

        if others:
            self.app.push_screen(ChoiceDialog("Open a workspace", list(others)), on_choice)
        else:
            self.rashomon.toast("no demo has been run yet; start one with `rashomon demo`")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self.rashomon.trash.names) if action == "undelete" else True

    # --- the filter ------------------------------------------------------------------------------

    def action_filter(self) -> None:
        typed = self.query_one("#filter", Input)
        typed.add_class("-shown")
        self.set_focus(typed)

    @on(Input.Changed, "#filter")
    def _filtered(self) -> None:
        self.workspace_changed(self.rashomon.snapshot)

    @on(Input.Submitted, "#filter")
    def _filter_taken(self) -> None:
        self.set_focus(self.query_one(VirtualTable))

    def action_all(self) -> None:
        typed = self.query_one("#filter", Input)
        typed.value = ""
        typed.remove_class("-shown")
        self.set_focus(self.query_one(VirtualTable))


def _resumable(runs: Sequence[WatchedRun]) -> list[WatchedRun]:
    """Return the runs to offer for resuming: not those stopped as wanted, nor planned ones that may wait for an active run."""
    excluded_states = {"stopped", "planned"} if any(run.active for run in runs) else {"stopped"}
    return [run for run in runs if run.resumable and run.summary.state not in excluded_states]


def _delete(trash: Trash, folders: Sequence[Path]) -> tuple[list[str], list[str]]:
    """Delete runs; return the names of the deleted ones, and the errors of the others."""
    names, problems = [], []
    for folder in folders:
        try:
            trash.delete(folder)
        except StoreError as error:
            problems.append(str(error))
        else:
            names.append(folder.name)
    return names, problems


def _display_name(workspace: Workspace) -> str:
    """Return a workspace's name for the title; a demo's includes its parent folder."""
    path = workspace.path
    return f"{DEMOS_FOLDER}/{path.name}" if path.parent.name == DEMOS_FOLDER else path.name


def _words(run: WatchedRun) -> str:
    spec = run.summary.spec
    values = (str(spec.get(key, "")) for key in ("benchmark", "model", "prompt_set"))
    return " ".join([run.name, run.summary.state, *values]).lower()


def _row(run: WatchedRun, columns: Sequence[Column]) -> Row:
    summary = run.summary
    state = state_appearance(summary.state)
    if summary.problem is not None:
        return [[(str(state), state.colour)], run.name, *[""] * (len(columns) - 2)]
    share = overall_accuracy(summary)
    peak = max((p.peak_memory for p in summary.progress), default=0)
    cells: dict[str, Cell] = {
        "state": [(str(state), state.colour)],
        "run": run.name,
        "": progress_bar(summary.done, summary.total, _BAR_WIDTH),
        "done": f"{summary.done}/{summary.total}",
        _ACCURACY: cell_text(share),
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
    """Return four lines of details about a run."""
    summary, state = run.summary, state_appearance(run.summary.state)
    first = literal(f"{state} ", state.colour) + literal(run.name, "bold")
    if summary.problem is not None:
        return first + "\n" + literal(summary.problem, WRONG, limit=400)
    spec = summary.spec
    setup = f"{spec['benchmark']}, {spec['model']}, prompts {spec['prompt_set']}, judged by {', '.join(spec['judge'])}"
    errors = sum(p.errors for p in summary.progress)
    truncated = sum(p.truncated for p in summary.progress)
    facts = (
        [f"{errors} errors"] * bool(errors) + [f"{truncated} truncated"] * bool(truncated) + judging_progress(summary)
    )
    if run.seconds_left is not None:
        facts.insert(0, f"{duration(run.seconds_left)} left")
    if not summary.own:
        facts.append("received, read-only: a adopts it")
    elif run.resumable:
        facts.append("R resumes it")
    lines = [first, literal(setup), literal(", ".join(facts)), literal(summary.note, limit=300)]
    return Content("\n").join(lines)
