"""Base class of the screens of results: computation in a thread, choice of the judge, and the state of the runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from textual.content import Content

from app.exports.export_formats import default_folder
from app.exports.export_writer import write_files
from app.report.tables.latex_tables import to_latex
from app.report.tables.table_rendering import to_csv, to_markdown
from app.text.text_elision import elide_shared
from app.tui.hostile_text import literal
from app.tui.screens.base_screen import RashomonScreen
from app.tui.screens.export_screen import ExportScreen
from app.tui.theme import DIM, PARTIAL, state_appearance
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.dialogs import Confirm
from app.tui.widgets.result_table import ResultTable
from app.tui.workspace_watcher import WorkspaceSnapshot
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from benchmarks.vocabulary import Table

T = TypeVar("T")
DEFAULT_JUDGE = "each run's first judge"
_LEAST_NAME, _NOTES = 16, 14
"""The least cells of a run's name in the title line, and those that each run leaves for what follows its name."""
_TABLE_FORMATS: dict[str, tuple[str, Callable[[Table], str]]] = {
    "LaTeX": (".tex", to_latex),
    "Markdown": (".md", to_markdown),
    "CSV": (".csv", to_csv),
}
"""The suffix and the text of a table in each format."""


class ResultsScreen(RashomonScreen):
    """A screen of results computed from ``folders``.

    A subclass defines :meth:`compute` and :attr:`result_table`. The borders of its tables name the judge,
    and say whether the results are up to date.
    """

    def __init__(self, folders: tuple[Path, ...]) -> None:
        super().__init__()
        self.folders = folders
        self.judge: str | None = None
        self._progress_computed: dict[str, tuple[int, int]] = {}
        """The progress of the runs when the results were computed."""
        self._started: float | None = None
        """The start of the computation in progress."""

    def on_mount(self) -> None:
        self.set_interval(1.0, self._show_state)
        self.compute()

    def compute(self) -> None:
        """Compute and display everything, through :meth:`work`."""
        raise NotImplementedError

    def work(self, compute: Callable[[], T], then: Callable[[T | str], None], *, group: str = "results") -> None:
        """Call ``compute`` in a thread, then ``then`` with its result, or with the message of a RashomonError.

        Any other error is displayed in a dialog.
        """
        self._started = time.monotonic()
        self._progress_computed = self._progress(self.rashomon.snapshot)
        self._show_state()

        def end() -> None:
            self._started = None
            self._show_state()

        self.attempt(compute, then, lambda error: then(str(error)), ended=end, group=group)

    def displayed_runs(self) -> tuple[Path, ...]:
        return self.folders

    def page_judge(self) -> str:
        return self.judge or ""

    def heading(self) -> Content:
        parts = [Content(self.name_.capitalize())]
        room = max(_LEAST_NAME, self.app.size.width // len(self.folders) - _NOTES)
        for folder, name in zip(
            self.folders, elide_shared([folder.name for folder in self.folders], room), strict=True
        ):
            run = self.current_run(folder)
            parts.append(literal(name, "bold", limit=60) + Content.styled(self.run_note(folder), DIM))
            if run is not None and run.summary.state != "done":
                state, summary = state_appearance(run.summary.state), run.summary
                parts.append(Content.styled(f"{state} {summary.done}/{summary.total} so far", state.colour))
        return Content("  ").join(parts)

    def run_note(self, folder: Path) -> str:
        """Return what follows a run's name in the title line."""
        return ""

    def workspace_changed(self, snapshot: WorkspaceSnapshot) -> None:
        self.update_title()
        self._show_state()

    def _progress(self, snapshot: WorkspaceSnapshot) -> dict[str, tuple[int, int]]:
        """Return the numbers of answers and verdicts of each run."""
        progress = {}
        for folder in self.folders:
            if (run := snapshot.run(folder.name)) is not None:
                verdicts = sum(counts.total for p in run.summary.progress for counts in p.judged.values())
                progress[folder.name] = (run.summary.done, verdicts)
        return progress

    def _show_state(self) -> None:
        for table in self.query(ResultTable):
            table.set_state(self.state())

    def state(self) -> Content:
        """Return the judge selection, and whether the results are being computed or out of date."""
        by = literal(f"Labels by {self.judge or DEFAULT_JUDGE}", DIM, limit=60)
        if self._started is not None:
            return Content.styled(f"◐ computing … {time.monotonic() - self._started:.0f} s   ", PARTIAL) + by
        if self._progress_computed != self._progress(self.rashomon.snapshot):
            return Content.styled("! out of date, r refreshes   ", PARTIAL) + by
        return by

    @property
    def result_table(self) -> ResultTable:
        """The table that the keys for intervals and copying apply to."""
        raise NotImplementedError

    # --- keys ------------------------------------------------------------------------------------

    def action_again(self) -> None:
        """Compute the results again."""
        self.compute()

    def action_intervals(self) -> None:
        """Show or hide confidence intervals."""
        self.result_table.toggle_intervals()

    def action_notes(self) -> None:
        """Unfold or fold the notes under the tables."""
        for table in self.query(ResultTable):
            table.toggle_notes()

    def action_copy(self) -> None:
        """Copy the table on display alone, or write it to a file, in a chosen format."""
        table = self.result_table.table
        if table is None:
            self.rashomon.toast("no table on display")
            return
        folder = typed_path(default_folder(self.folders))
        actions: dict[str, Callable[[], None]] = {
            form: partial(self._copy, table, to_text) for form, (_, to_text) in _TABLE_FORMATS.items()
        }
        actions |= {
            f"{form} to {folder / table.name}{suffix}": partial(
                self._write, folder / (table.name + suffix), to_text(table)
            )
            for form, (suffix, to_text) in _TABLE_FORMATS.items()
        }

        def on_choice(choice: str | None) -> None:
            if choice is not None:
                actions[choice]()

        self.app.push_screen(ChoiceDialog("Copy this table as", list(actions)), on_choice)

    def _copy(self, table: Table, to_text: Callable[[Table], str]) -> None:
        self.rashomon.copy(to_text(table))

    def _write(self, path: Path, text: str) -> None:
        """Write a file; ask first if it exists."""

        def work() -> None:
            write_files(path.parent, {path.name: text})

        def on_answer(yes: bool | None) -> None:
            if yes:
                self.attempt(work, lambda _: self.rashomon.toast(f"wrote {path}"), group="write")

        if path_exists(path):
            self.app.push_screen(Confirm("Replace this file?", str(path), yes="Replace"), on_answer)
        else:
            on_answer(True)

    def action_judge(self) -> None:
        """Choose the judge whose labels count."""

        def show_choices(judges: list[str] | str) -> None:
            if isinstance(judges, str):
                self.rashomon.show_error(judges)
                return
            panels = [f"{rule}({', '.join(judges)})" for rule in ("majority", "all")] if len(judges) > 1 else []
            names = [DEFAULT_JUDGE, *judges, *panels]
            self.app.push_screen(ChoiceDialog("Labels by", names, chosen=self.judge or DEFAULT_JUDGE), on_choice)

        def on_choice(judge: str | None) -> None:
            if judge is not None:
                self.judge = None if judge == DEFAULT_JUDGE else judge
                self.compute()

        self.work(lambda: self.rashomon.results.judges(self.folders), show_choices, group="judges")

    def action_export(self) -> None:
        """Export these runs with the labels of the same judge."""
        self.app.push_screen(ExportScreen(self.folders, judge=self.judge))
