"""What the screens of tables and of comparisons share: results computed in a thread, one judge, and how far the runs are."""

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
from app.tui.theme import state_look
from app.tui.widgets.choose import ChoiceDialog
from app.tui.workspace_watcher import Snapshot
from benchmarks.errors import RashomonError

T = TypeVar("T")
FIRST_JUDGE = "the runs' first judge"


class ResultsScreen(RashomonScreen):
    """A screen of what is computed of ``folders``. A subclass gives :meth:`compute` and :meth:`redraw`; its body has a
    ``Static`` with the id ``state``."""

    DEFAULT_CSS = """
    ResultsScreen #state { height: auto; max-height: 3; padding: 0 1; color: #909090; }
    ResultsScreen.-short .notes { max-height: 3; }
    """

    def __init__(self, folders: tuple[Path, ...]) -> None:
        super().__init__()
        self.folders = folders
        self.judge: str | None = None
        self.intervals = True
        self._computed: dict[str, tuple[int, int]] = {}
        self._since: float | None = None

    def on_mount(self) -> None:
        self.set_interval(1.0, self._tell_state)
        self.compute()

    def compute(self) -> None:
        """Compute and show everything, by :meth:`work`."""
        raise NotImplementedError

    def work(self, make: Callable[[], T], then: Callable[[T | str], None], *, group: str = "results") -> None:
        """Compute ``make`` in a thread, then show it by ``then``; a RashomonError becomes its sentence.

        Any other error is shown over the screen.
        """
        self._since = time.monotonic()
        self._computed = self._progress(self.rashomon.snapshot)
        self._tell_state()

        def made() -> T | str | Exception:
            try:
                return make()
            except RashomonError as error:
                return str(error)
            except Exception as error:
                return error

        def shown(found: T | str | Exception) -> None:
            self._since = None
            self._tell_state()
            if isinstance(found, Exception):
                self.rashomon.failed(found)
            else:
                then(found)

        self.in_thread(made, shown, group=group)

    def shown_runs(self) -> tuple[Path, ...]:
        return self.folders

    def heading(self) -> Content:
        told = [Content(self.name_.capitalize())]
        for folder in self.folders:
            now = self.run_now(folder)
            told.append(literal(folder.name, "bold", limit=60))
            if now is not None and now.summary.state != "done":
                look, run = state_look(now.summary.state), now.summary
                told.append(Content.styled(f"{look} {run.done}/{run.total} so far", look.colour))
        return Content("  ").join(told)

    def changed(self, snapshot: Snapshot) -> None:
        self.retitle()
        self._tell_state()

    def _progress(self, snapshot: Snapshot) -> dict[str, tuple[int, int]]:
        """Of each run how many answers and verdicts it has."""
        found = {}
        for folder in self.folders:
            if (now := snapshot.run(folder.name)) is not None:
                verdicts = sum(
                    j.labelled + j.unparsed + j.failed for p in now.summary.progress for j in p.judged.values()
                )
                found[folder.name] = (now.summary.done, verdicts)
        return found

    def _tell_state(self) -> None:
        self.query_one("#state", Static).update(self._state())

    def _state(self) -> Content:
        by = literal(f"Labels by {self.judge or FIRST_JUDGE}", limit=200)
        if self._since is not None:
            return Content(f"◐ computing … {time.monotonic() - self._since:.0f} s   ") + by
        if self._computed != self._progress(self.rashomon.snapshot):
            return Content("! the runs have gone on since: r computes again   ") + by
        return by

    # --- keys ------------------------------------------------------------------------------------

    def action_again(self) -> None:
        """Compute again what has changed."""
        self.compute()

    def action_intervals(self) -> None:
        """Show intervals, or values alone."""
        self.intervals = not self.intervals
        self.redraw()

    def redraw(self) -> None:
        """Show again what is computed."""
        raise NotImplementedError

    def action_judge(self) -> None:
        """Choose whose labels count."""

        def listed(judges: list[str] | str) -> None:
            if isinstance(judges, str):
                self.rashomon.failed(judges)
                return
            panels = [f"{rule}({', '.join(judges)})" for rule in ("majority", "all")] if len(judges) > 1 else []
            words = [FIRST_JUDGE, *judges, *panels]
            self.app.push_screen(ChoiceDialog("Whose labels?", words, chosen=self.judge or FIRST_JUDGE), chosen)

        def chosen(judge: str | None) -> None:
            if judge is not None:
                self.judge = None if judge == FIRST_JUDGE else judge
                self.compute()

        self.work(lambda: self.rashomon.results.judges(self.folders), listed, group="judges")

    def action_export(self) -> None:
        """Export these runs, by the same judge."""
        self.app.push_screen(ExportScreen(self.folders, judge=self.judge))
