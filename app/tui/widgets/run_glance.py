"""A run at a glance: its headline, what to do next, and its newest answer with its picture."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.store.run_tail import RunUpdate, Tail
from app.tui.hostile_text import literal
from app.tui.latest_only import LatestOnly
from app.tui.screen_services import BackgroundScreen
from app.tui.theme import DIM, HEADING
from app.tui.widgets.newest_answer import NewestAnswer
from app.tui.widgets.titled_panel import panel, set_panel_title
from app.tui.workspace_watcher import WatchedRun
from benchmarks.answer_behaviour import names_sources
from benchmarks.base import Benchmark
from benchmarks.errors import RashomonError
from benchmarks.registry import get_benchmark
from benchmarks.tables.scorecard import NAME as SCORECARD

if TYPE_CHECKING:
    from app.compare.result_cache import ResultCache

_SECONDS = 3.0
"""The shortest interval at which the headline of an active run is computed again."""


class _Result(NamedTuple):
    """A run's headlines, and what to try with its model; or the reason why there are none."""

    lines: Sequence[str]
    steps: Sequence[str] = ()


class RunGlance(Container):
    """The run set by :meth:`show`. What is on display stays until its successor has been read, so that nothing flickers."""

    def __init__(self, screen: BackgroundScreen, next_step: str) -> None:
        super().__init__()
        self._screen, self._next_step = screen, next_step
        self._run: WatchedRun | None = None
        self._rule: str | None = None
        self._tail: Tail | None = None
        self._computed: object = None
        """The state of the run whose headline was requested last."""
        self._newest, self._result = LatestOnly(screen, "glance"), LatestOnly(screen, "headline")

    def compose(self) -> ComposeResult:
        with panel(VerticalScroll(id="glance-result"), "Result"):
            yield Static()
        yield panel(NewestAnswer(), "Newest answer")

    def on_mount(self) -> None:
        self.set_interval(_SECONDS, self._compute)

    def show(self, run: WatchedRun, rule: str | None) -> None:
        """Show a run; ``rule`` is what should win where sources disagree, by the user's word."""
        before, self._run, self._rule = self._run, run, rule
        if before is None or before.folder != run.folder:
            self._tail = Tail(run.folder, media=True)
        elif before.summary == run.summary:
            return
        tail = self._tail
        assert tail is not None
        self._newest.submit(lambda: _read(tail, run), self._show_newest)
        if before is None or before.folder != run.folder or not run.active:
            self._compute()

    def _compute(self) -> None:
        """Compute the headline, unless the run is as it was the last time."""
        run, rule, results = self._run, self._rule, self._screen.rashomon.results
        if run is None or not self.display or self._computed == (key := (run.folder, run.summary, rule)):
            return
        self._computed = key
        self._result.submit(lambda: (run, _result(results, run, rule)), self._show_result)

    def _show_newest(self, newest: tuple[RunUpdate, Benchmark] | None) -> None:
        if newest is not None and self.is_mounted:
            self.query_one(NewestAnswer).show(*newest)

    def _show_result(self, result: tuple[WatchedRun, _Result]) -> None:
        if not self.is_mounted:
            return
        run, (lines, steps) = result
        set_panel_title(self.query_one("#glance-result"), Content("Result of ") + literal(run.name, limit=80))
        content = [literal(line, limit=1000) for line in lines]
        if steps:
            content += [Content(""), Content.styled("What to try, cheapest first", HEADING)]
            content += [literal(f"  {step}", limit=300) for step in steps]
        else:
            content += [Content(""), Content.styled(self._next_step, DIM)]
        self.query_one("#glance-result Static", Static).update(Content("\n").join(content))


def _read(tail: Tail, run: WatchedRun) -> tuple[RunUpdate, Benchmark] | None:
    try:
        return tail.read(), get_benchmark(run.summary.spec["benchmark"])
    except (RashomonError, sqlite3.Error):  # the run is being deleted
        return None


def _result(results: ResultCache, run: WatchedRun, rule: str | None) -> _Result:
    from app.report.tables.run_overview import run_headlines, run_remedies
    from app.report.tables.run_tables import tables_from

    try:
        inputs = results.inputs([run.folder])
        inputs = inputs.with_trust(rule if names_sources(inputs.benchmark) else None)
        tables = tables_from(inputs, only=SCORECARD) if inputs.leads_with_scorecard else []
        headlines, steps = run_headlines(inputs, tables), run_remedies(run.folder, inputs)
    except (RashomonError, sqlite3.Error) as error:
        return _Result((str(error),))
    return _Result(headlines, [str(step) for step in steps])
