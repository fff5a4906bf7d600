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

from app.report.runs.short_names import short_benchmark
from app.store.run_titles import MOST_CHARACTERS, set_title
from app.store.workspace import Workspace
from app.tui.hostile_text import literal
from app.tui.key_commands import COMMANDS, bindings
from app.tui.keymap import format_keys
from app.tui.run_actions import delete_runs, make_baselines, pause_or_resume, resume_run, stop_run
from app.tui.screens.base_screen import RashomonScreen
from app.tui.screens.first_steps import first_steps
from app.tui.screens.run_details import run_details
from app.tui.screens.run_list import NEWEST, Group, RunList, RunRow
from app.tui.theme import DIM, WRONG
from app.tui.tui_confirmations import confirm_adoption
from app.tui.widgets.dialogs import TextDialog
from app.tui.widgets.run_glance import RunGlance
from app.tui.widgets.table_columns import Cell, Row
from app.tui.widgets.titled_panel import panel, set_panel_title
from app.tui.widgets.virtual_table import VirtualTable
from app.tui.workspace_choice import choose_workspace, display_name, open_demo
from app.tui.workspace_watcher import WatchedRun, WorkspaceSnapshot
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark

_TABLE_LINES, _OTHER_LINES = 3, 9
"""The lines of the list beside its runs, and those of the screen beside the list."""
_LEAST_GLANCE = 5
"""The lines from which there is room for a run's result."""
_READING = "◐ reading the runs …"
_ORDER_WORDS = {
    "run": "name",
    "conflict": "accuracy under conflict",
    "done": "progress",
    "quant": "quantisation",
    "left": "time left",
}


class RunsScreen(RashomonScreen):
    """All runs of the workspace, the newest first. Details of the run under the cursor are at the bottom."""

    name_ = "runs"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self) -> None:
        super().__init__()
        self.list = RunList()
        self._resume_offered = False
        self._demos: list[Workspace] | None = None
        self._had_runs = False
        self._is_empty = False
        """True if the workspace on display is known to have no runs."""

    def heading(self) -> Content:
        snapshot = self.rashomon.snapshot
        active = sum(run.active for run in snapshot.runs)
        if snapshot.complete:
            count = f"{snapshot.total:,} run{'s' * (snapshot.total != 1)}"
        else:
            count = (
                f"◐ reading {len(snapshot.runs):,} of {snapshot.total:,} runs" if snapshot.total else "◐ reading runs"
            )
        title = f"Runs  {count} in {display_name(self.rashomon.workspace)}"
        if active:
            title += f", {active} active"
        if snapshot.device:
            title += f"; device in use by {snapshot.device}"
        return literal(title)

    def body(self) -> ComposeResult:
        yield Input(placeholder="words in name, state, model, benchmark or prompts; Esc shows all", id="filter")
        yield panel(VirtualTable(empty=_READING, id="runs"), "Runs")
        yield panel(Static(id="about"), "This run")
        keys = {name: self._key(name) for name in ("table.select", "runs.samples", "everywhere.page", "runs.mark")}
        yield RunGlance(
            self,
            f"{keys['table.select']} shows its tables, {keys['runs.samples']} its answers, {keys['everywhere.page']} both in "
            f"the browser; {keys['runs.mark']} marks it to compare it with another.",
        )

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VirtualTable))

    # --- drawing ---------------------------------------------------------------------------------

    def workspace_changed(self, snapshot: WorkspaceSnapshot) -> None:
        is_empty = snapshot.complete and not snapshot.total
        if is_empty is not self._is_empty:
            self._is_empty = is_empty
            self.refresh_bindings()
        words = self.query_one("#filter", Input).value.lower().split()
        table = self.query_one(VirtualTable)
        self.list.rule = self.rashomon.settings.rule
        self.list.update(snapshot.runs, words, self.size.width - 3)  # the frame, and the scroll bar
        entries = self.list.entries
        rows: dict[int, Row] = {}

        def page(first: int, count: int) -> Sequence[Row]:
            for number in range(first, first + count):
                if number not in rows:
                    rows[number] = self.list.cells(entries[number])
            return [rows[number] for number in range(first, first + count)]

        if snapshot.complete:
            table.marks &= {run.name for run in snapshot.runs}
            self._had_runs = self._had_runs or bool(snapshot.runs)
            if not snapshot.runs and self._demos is None:
                self._demos = self.rashomon.workspace.demos()
        table.empty = self._empty_text(snapshot, bool(words))
        table.frozen = 2
        table.show(len(entries), page, keys=self.list.keys(), columns=self.list.columns)
        set_panel_title(table, self._panel_title())
        self.query_one("#about").display = bool(snapshot.runs)
        self.update_title()
        self._update_selection()
        if snapshot.complete and not self._resume_offered:
            self._resume_offered = True
            self._offer_resume(_resumable(snapshot.runs))

    def _panel_title(self) -> str:
        """Return the order of the list and its groups in words."""
        order = self.list.order
        if order == NEWEST:
            words = "newest first" if self.list.descending else "oldest first"
        else:
            words = f"by {_ORDER_WORDS.get(order, order)}"
        return f"Runs, {words}" + ", grouped by benchmark" * self.list.grouped

    def _empty_text(self, snapshot: WorkspaceSnapshot, filtered: bool) -> str | Sequence[Cell]:
        """Return the lines for an empty table."""
        if not snapshot.complete:
            return _READING
        if filtered and snapshot.runs:
            return "no run matches; Esc shows all"
        if self.rashomon.processes.running_count():
            return "◐ starting; the run appears here in a moment"
        if self._had_runs and not self.rashomon.workspace.path.exists():
            return [[("✗ the folder of this workspace is gone; o opens another", WRONG)]]
        return first_steps(self._key, has_demos=bool(self._demos))

    def _key(self, name: str) -> str:
        """Return the first key of a command, formatted for display."""
        (command,) = (command for command in COMMANDS if command.id == name)
        return format_keys(command, self.rashomon.keys).partition(" ")[0]

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
        entry = self._entry()
        about = (
            self._about_group(entry) if isinstance(entry, Group) else self.run_details(runs[0]) if runs else Content("")
        )
        self.update_static("#about", about)
        self._update_glance(runs)

    def _update_glance(self, runs: Sequence[WatchedRun]) -> None:
        """Show the result and the newest answer of the run under the cursor, if the list leaves room for them."""
        table, glance = self.query_one(VirtualTable), self.query_one(RunGlance)
        needed = len(self.list.entries) + _TABLE_LINES
        room = self.size.height - needed - _OTHER_LINES
        readable = [run for run in runs if run.summary.problem is None]
        glance.display = bool(readable) and room >= _LEAST_GLANCE
        table.styles.height = needed if glance.display else "1fr"
        for run in readable * glance.display:
            glance.show(run, self.rashomon.settings.rule)

    def run_details(self, run: WatchedRun) -> Content:
        awaited = run.resumable and self.rashomon.processes.will_start(run.folder, run.summary.state)
        resuming = "starts by itself" if awaited else "R resumes it"
        return run_details(run, resuming, self.size.width - 4, self.rashomon.settings.rule)

    def _about_group(self, group: Group) -> Content:
        runs = [run for run in self.rashomon.snapshot.runs if _benchmark_of(run) == group.benchmark]
        name = str(runs[0].summary.spec.get("benchmark", "")) if runs else ""
        try:
            title = get_benchmark(name).title
        except SpecError:  # its package is not installed, or broken
            title = name or "runs that cannot be read"
        active = sum(run.active for run in runs)
        facts = f"{group.runs:,} runs" + f", {active} active" * bool(active)
        return literal(title, "bold") + "\n" + literal(facts) + "\n" + literal("Enter folds or unfolds them", DIM)

    @on(VirtualTable.Moved)
    def _moved(self) -> None:
        self._update_selection()

    def _entry(self) -> RunRow | Group | None:
        """Return the run or the heading under the cursor."""
        place = self.query_one(VirtualTable).cursor
        return self.list.entries[place] if place < len(self.list.entries) else None

    def under_cursor(self) -> list[WatchedRun]:
        """Return the run under the cursor; empty if there is none."""
        entry = self._entry()
        return [entry.run] if isinstance(entry, RunRow) else []

    def marked(self) -> list[WatchedRun]:
        """Return the marked runs, oldest first."""
        marks = self.query_one(VirtualTable).marks
        return [run for run in self.rashomon.snapshot.runs if run.name in marks]

    # --- actions ---------------------------------------------------------------------------------

    @on(VirtualTable.Selected)
    def _open(self) -> None:
        entry = self._entry()
        if isinstance(entry, Group):
            self.list.folded ^= {entry.benchmark}
            self.show_snapshot()
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

    @on(VirtualTable.HeaderClicked)
    def _header_clicked(self, event: VirtualTable.HeaderClicked) -> None:
        self.list.order_by(event.column)
        self.show_snapshot()

    def action_sort(self) -> None:
        self.list.next_order()
        self.show_snapshot()

    def action_reverse(self) -> None:
        self.list.reverse = not self.list.reverse
        self.show_snapshot()

    def action_group(self) -> None:
        self.list.grouped = not self.list.grouped
        self.show_snapshot()

    def action_mark(self) -> None:
        table, entry = self.query_one(VirtualTable), self._entry()
        if isinstance(entry, Group):
            names = {run.name for run in self.rashomon.snapshot.runs if _benchmark_of(run) == entry.benchmark}
            table.mark(table.marks - names if names <= table.marks else table.marks | names)
        else:
            table.toggle_mark()
        self._update_selection()

    def action_rename(self) -> None:
        if not self.rashomon.may_write():
            return
        for run in self.under_cursor():
            folder = run.folder

            def on_answer(title: str | None, folder: Path = folder) -> None:
                if title is not None:
                    self.attempt(lambda: set_title(folder, title), lambda _: self.refresh_bindings(), group="rename")

            text = f"It is listed beside the name, {folder.name}, which commands and all screens use. Empty removes it."
            dialog = TextDialog("Title of the run", text, value=run.summary.title, check=_check_title)
            self.app.push_screen(dialog, on_answer)

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

    def action_baselines(self) -> None:
        """Make the baselines of a run after a confirmation; they appear in the list."""
        for run in self.under_cursor():
            make_baselines(self.rashomon, run)

    def action_pause(self) -> None:
        for run in self.under_cursor():
            pause_or_resume(self.rashomon, run)

    def action_resume(self) -> None:
        for run in self.under_cursor():
            resume_run(self.rashomon, run)

    def action_stop(self) -> None:
        for run in self.under_cursor():
            stop_run(self.rashomon, run)

    def action_adopt(self) -> None:
        if self.rashomon.may_write():
            for run in self.under_cursor():
                confirm_adoption(self, run.folder)

    def action_delete(self) -> None:
        delete_runs(self, self.marked() or self.under_cursor(), self._deleted)

    def _deleted(self, names: Sequence[str]) -> None:
        self.query_one(VirtualTable).marks -= set(names)
        self.refresh_bindings()

    def action_undelete(self) -> None:
        """Restore the run that was deleted last."""
        self.attempt(self.rashomon.trash.restore, self._restored, group="delete")

    def _restored(self, folder: Path) -> None:
        self.refresh_bindings()
        self.rashomon.toast(f"{folder.name} is restored")

    def action_workspace(self) -> None:
        """Switch to a demo's workspace, from there to the regular one, or to any other folder."""
        choose_workspace(self)

    def action_demo(self) -> None:
        """Open the newest demo's workspace; run the demo first if there is none, after a confirmation."""
        open_demo(self.rashomon)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("filter", "mark", "compare"):
            return not self._is_empty
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


def _benchmark_of(run: WatchedRun) -> str:
    return short_benchmark(str(run.summary.spec.get("benchmark", "")))


def _check_title(text: str) -> str:
    return f"at most {MOST_CHARACTERS} characters" if len(text) > MOST_CHARACTERS else ""
