"""Base class of the screens of results: computation in a thread, choice of the judge, and the state of the runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from textual.content import Content
from textual.widgets import Static

from app.tui.hostile_text import literal
from app.tui.screens.base import RashomonScreen
from app.tui.screens.export import ExportScreen
from app.tui.theme import state_appearance
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.result_table import ResultTable
from app.tui.workspace_watcher import WorkspaceSnapshot
from benchmarks.errors import RashomonError

T = TypeVar("T")
DEFAULT_JUDGE = "each run's first judge"


class ResultsScreen(RashomonScreen):
    """A screen of results computed from ``folders``.

    A subclass defines :meth:`compute` and :meth:`redraw`; its body has a ``Static`` with the id ``state``.
    """

    def __init__(self, folders: tuple[Path, ...]) -> None:
        super().__init__()
        self.folders = folders
        self.judge: str | None = None
        self.intervals = True
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

        def attempt() -> T | str | Exception:
            try:
                return compute()
            except RashomonError as error:
                return str(error)
            except Exception as error:
                return error

        def finish(result: T | str | Exception) -> None:
            self._started = None
            self._show_state()
            if isinstance(result, Exception):
                self.rashomon.show_error(result)
            else:
                then(result)

        self.in_thread(attempt, finish, group=group)

    def displayed_runs(self) -> tuple[Path, ...]:
        return self.folders

    def heading(self) -> Content:
        parts = [Content(self.name_.capitalize())]
        for folder in self.folders:
            run = self.current_run(folder)
            parts.append(literal(folder.name, "bold", limit=60))
            if run is not None and run.summary.state != "done":
                state, summary = state_appearance(run.summary.state), run.summary
                parts.append(Content.styled(f"{state} {summary.done}/{summary.total} so far", state.colour))
        return Content("  ").join(parts)

    def workspace_changed(self, snapshot: WorkspaceSnapshot) -> None:
        self.update_title()
        self._show_state()

    def _progress(self, snapshot: WorkspaceSnapshot) -> dict[str, tuple[int, int]]:
        """Return the numbers of answers and verdicts of each run."""
        progress = {}
        for folder in self.folders:
            if (run := snapshot.run(folder.name)) is not None:
                verdicts = sum(
                    j.labelled + j.unparsed + j.failed for p in run.summary.progress for j in p.judged.values()
                )
                progress[folder.name] = (run.summary.done, verdicts)
        return progress

    def _show_state(self) -> None:
        self.query_one("#state", Static).update(self._state())

    def _state(self) -> Content:
        by = literal(f"Labels by {self.judge or DEFAULT_JUDGE}", limit=200)
        if self._started is not None:
            return Content(f"◐ computing … {time.monotonic() - self._started:.0f} s   ") + by
        if self._progress_computed != self._progress(self.rashomon.snapshot):
            return Content("! out of date, as the runs have new answers: r refreshes   ") + by
        return by

    # --- keys ------------------------------------------------------------------------------------

    def action_again(self) -> None:
        """Compute the results again."""
        self.compute()

    def action_intervals(self) -> None:
        """Show or hide confidence intervals."""
        self.intervals = not self.intervals
        self.redraw()

    def action_notes(self) -> None:
        """Unfold or fold the notes under the tables."""
        for table in self.query(ResultTable):
            table.toggle_notes()

    def redraw(self) -> None:
        """Display the computed results again."""
        raise NotImplementedError

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
