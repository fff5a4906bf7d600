"""The Compare screen: metrics of several runs, flips, agreement, the paper's rows, memory and speed, a recommended run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import ScrollableContainer, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import ContentSwitcher, Static

from app.compare.recommend import Recommendation, format_points
from app.compare.side_by_side import side_by_side_table
from app.compare.tables import Comparison
from app.tui.commands import bindings
from app.tui.hostile_text import literal
from app.tui.screens.flips import FlippedScreen
from app.tui.screens.results import ResultsScreen
from app.tui.theme import DIM, PARTIAL
from app.tui.widgets.choice_dialogs import MultipleChoiceDialog
from app.tui.widgets.dialogs import TextDialog
from app.tui.widgets.matrix import Matrix
from app.tui.widgets.result_table import ResultTable
from benchmarks.errors import RashomonError
from benchmarks.vocabulary import Table

PANES = {
    "metrics": "Metrics",
    "flips": "Flips",
    "agreement": "Agreement",
    "paper": "The paper",
    "cost": "Memory, speed",
    "recommendation": "Recommended run",
}
"""The titles of the panes by id."""
MARGINS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2)


@dataclass(frozen=True, slots=True)
class _Results:
    """The contents of the panes; ``paper`` and ``recommendation`` are messages if there is none."""

    comparison: Comparison
    metrics: Table
    paper: Table | str
    paper_models: tuple[str, ...]
    recommendation: Recommendation | str


class CompareScreen(ResultsScreen):
    """Compare two or more runs. The first one is the baseline."""

    name_ = "compare"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self, folders: tuple[Path, ...]) -> None:
        super().__init__(folders)
        self.margin = 0.03
        self.rows: tuple[str, ...] | None = None
        """The paper's rows on display; None for the first one."""
        self.pair = 0
        """The index of the run whose flips are on display."""
        self.computed: _Results | None = None

    def on_mount(self) -> None:
        self._show_pane("metrics")

    def body(self) -> ComposeResult:
        with Vertical(id="body"):
            yield Static(id="state")
            with VerticalScroll(id="warnings"):
                yield Static(id="warning-text")
            yield Static(id="names")
            with ContentSwitcher(initial="metrics", id="panes"):
                yield ResultTable(id="metrics")
                with Vertical(id="flips"):
                    yield Static(id="pair")
                    with ScrollableContainer(id="scroll", can_focus=False):
                        yield Matrix(id="matrix")
                yield ResultTable(id="agreement")
                yield ResultTable(id="paper")
                yield ResultTable(id="cost")
                with Vertical(id="recommendation"):
                    with VerticalScroll(id="recommendation-scroll"):
                        yield Static(id="recommendation-text")
                    yield ResultTable(id="recommendation-table")

    def compute(self) -> None:
        results, folders, judge, margin, rows = self.rashomon.results, self.folders, self.judge, self.margin, self.rows

        def work() -> _Results:
            comparison = results.comparison(folders, judge)
            models = tuple(results.paper_models(folders, judge))
            selected = models[:1] if rows is None else rows
            paper: Table | str = "No row of the paper is selected, or it has none for these tables; b selects rows."
            if selected:
                paper = results.paper(folders, judge, selected)
            recommendation = _recommended(lambda: results.recommendation(folders, judge, margin))
            return _Results(comparison, side_by_side_table(comparison), paper, models, recommendation)

        self.work(work, self._show)

    def _show(self, computed: _Results | str) -> None:
        if isinstance(computed, str):
            self.computed = None
            for table in self.query(ResultTable):
                table.show_message(computed)
            return
        self.computed = computed
        self.rows = tuple(row for row in self.rows if row in computed.paper_models) if self.rows else self.rows
        self.redraw()

    def redraw(self) -> None:
        computed = self.computed
        if computed is None:
            return
        warnings = [literal(f"! {warning}") for warning in computed.comparison.warnings]
        self.query_one("#warning-text", Static).update(Content("\n").join(warnings))
        self.query_one("#warnings").display = bool(warnings)
        tables = {table.name: table for table in computed.comparison.tables}
        recommendation = computed.recommendation
        contents: dict[str, Table | str] = {
            "#metrics": computed.metrics,
            "#agreement": tables["changes"],
            "#paper": computed.paper,
            "#cost": tables["cost"],
            "#recommendation-table": recommendation if isinstance(recommendation, str) else recommendation.table,
        }
        for selector, table in contents.items():
            widget = self.query_one(selector, ResultTable)
            if isinstance(table, str):
                widget.show_message(table)
            else:
                widget.show(table, intervals=self.intervals)
        self.query_one("#recommendation-text", Static).update(_recommendation_text(recommendation))
        self._show_flips(tables["flips"])

    def _show_flips(self, table: Table) -> None:
        assert self.computed is not None
        pairs = self.computed.comparison.pairs
        self.pair %= len(pairs)
        pair = pairs[self.pair]
        flips = pair.flips()
        change_count = sum(n for (was, now), n in flips.items() if was != now)
        position = f"   (run {self.pair + 1} of {len(pairs)}; b shows the next)" if len(pairs) > 1 else ""
        names = literal(pair.first.label, "bold") + Content(" → ") + literal(pair.second.label, "bold")
        count = (
            f": labels differ on {change_count} of {len(pair.shared)} shared instances. Enter lists a cell.{position}"
        )
        self.query_one("#pair", Static).update(names + Content(count))
        labels = [label for label in table.columns[:-1] if any(label in cell for cell in flips)]
        self.query_one(Matrix).show(labels, flips)

    # --- panes -----------------------------------------------------------------------------------

    @property
    def pane(self) -> str:
        """The id of the pane on display."""
        return str(self.query_one("#panes", ContentSwitcher).current)

    def _show_pane(self, pane: str) -> None:
        self.query_one("#panes", ContentSwitcher).current = pane
        names = (f" {title} " for title in PANES.values())
        styles = ("bold reverse" if name == pane else DIM for name in PANES)
        titles = (Content.styled(name, style) for name, style in zip(names, styles, strict=True))
        self.query_one("#names", Static).update(Content(" ").join(titles))
        # On the last pane it is the text that may need to scroll.
        focus = {"flips": self.query_one(Matrix), "recommendation": self.query_one("#recommendation-scroll")}
        self.set_focus(focus.get(pane) or self.query_one(f"#{pane}", ResultTable).rows)

    def _move(self, step: int) -> None:
        names = list(PANES)
        self._show_pane(names[(names.index(self.pane) + step) % len(names)])

    def action_next(self) -> None:
        self._move(1)

    def action_previous(self) -> None:
        self._move(-1)

    def action_beside(self) -> None:
        """Show the next run on Flips; elsewhere select rows of the paper."""
        computed = self.computed
        if computed is None:
            return
        if self.pane == "flips":
            self.pair += 1
            self.redraw()
        elif not computed.paper_models:
            self.rashomon.toast("the paper has no rows for these tables")
        else:
            selected = computed.paper_models[:1] if self.rows is None else self.rows
            dialog = MultipleChoiceDialog("Rows of the paper", computed.paper_models, chosen=selected)
            self.app.push_screen(dialog, self._set_rows)

    def _set_rows(self, rows: list[str] | None) -> None:
        if rows is not None:
            self.rows = tuple(rows)
            self._show_pane("paper")
            self.compute()

    def action_wider(self) -> None:
        self._set_margin(next((margin for margin in MARGINS if margin > self.margin), self.margin))

    def action_narrower(self) -> None:
        self._set_margin(next((margin for margin in reversed(MARGINS) if margin < self.margin), self.margin))

    def action_margin(self) -> None:
        """Enter the margin in percentage points."""

        def on_input(text: str | None) -> None:
            if text is not None:
                self._set_margin(float(text) / 100)

        dialog = TextDialog(
            "Margin: percentage points below the best run",
            "Choose the margin before you look at the results.",
            value=format_points(self.margin),
            check=_margin_problem,
        )
        self.app.push_screen(dialog, on_input)

    def _set_margin(self, margin: float) -> None:
        self._show_pane("recommendation")
        if margin != self.margin:
            self.margin = margin
            self.compute()

    @on(Matrix.Selected)
    def _open_cell(self, event: Matrix.Selected) -> None:
        if not event.count:
            self.rashomon.toast("this cell has no instances")
        elif self.computed is not None:
            comparison = self.computed.comparison
            pair = comparison.pairs[self.pair]
            screen = FlippedScreen(self.folders, comparison, pair, event.was, event.now, self.judge)
            self.app.push_screen(screen)


def _recommended(compute: Callable[[], Recommendation]) -> Recommendation | str:
    try:
        return compute()
    except RashomonError as error:
        return str(error)


def _margin_problem(text: str) -> str:
    try:
        return "" if 0 < float(text) < 100 else "Enter more than 0 and less than 100, such as 3."
    except ValueError:
        return "Enter a number, such as 3 or 0.5."


def _recommendation_text(recommendation: Recommendation | str) -> Content:
    if isinstance(recommendation, str):
        return Content("")
    text = [literal(line, "bold") for line in recommendation.advice]
    margin = format_points(recommendation.decision.margin)
    text.append(Content(f"Margin: {margin} points; + and - change it, m enters it.").stylize(DIM))
    for title, lines in (("Differences", recommendation.behaviour), ("Not established", recommendation.caveats)):
        if lines:
            text += [Content.styled(title, f"bold {PARTIAL}"), *(literal(f"- {line}") for line in lines)]
    return Content("\n").join(text)
