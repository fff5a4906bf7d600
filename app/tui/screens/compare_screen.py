"""The Compare screen: an overview, then metrics, flips, agreement, the paper's rows, resources, costs, the recommendation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import ScrollableContainer, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import ContentSwitcher, Static

from app.compare.comparison_headline import headlines
from app.compare.comparison_tables import Comparison
from app.compare.pair_overview import PairOverview, pair_overviews
from app.compare.recommend.recommendation import Recommendation
from app.compare.side_by_side import side_by_side_table
from app.tui.hostile_text import literal
from app.tui.key_commands import bindings
from app.tui.screens.comparison_overview import FLIPS, TEXTS, Overview
from app.tui.screens.flips_screen import FlippedScreen, SideBySideScreen
from app.tui.screens.recommendation_pane import ask_margin, ask_requirements, cost_ratios_content, recommendation_text
from app.tui.screens.results_screen import ResultsScreen
from app.tui.screens.zoom_screen import zoom
from app.tui.theme import PARTIAL
from app.tui.widgets.choice_dialogs import ChoiceDialog, MultipleChoiceDialog
from app.tui.widgets.count_matrix import Matrix
from app.tui.widgets.result_table import ResultTable
from app.tui.widgets.tab_line import TabLine
from app.tui.widgets.titled_panel import panel
from benchmarks.errors import RashomonError
from benchmarks.vocabulary import Table

PANES = {
    "overview": "Overview",
    "metrics": "Metrics",
    "flips": "Flips",
    "agreement": "Agreement",
    "paper": "Paper",
    "cost": "Resources",
    "ratios": "Costs",
    "recommendation": "Recommendation",
}
"""The titles of the panes by id."""
REMEDIES = "remedies"
"""The pane and the table of runs whose protocols differ."""
MARGINS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2)


@dataclass(frozen=True, slots=True)
class _Results:
    """The contents of the panes, without the paper's; ``recommendation`` is a message if there is none."""

    comparison: Comparison
    overviews: tuple[PairOverview, ...]
    metrics: Table
    recommendation: Recommendation | str


class CompareScreen(ResultsScreen):
    """Compare two or more runs. The first one is the baseline."""

    name_ = "compare"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self, folders: tuple[Path, ...]) -> None:
        super().__init__(folders)
        self.margin = 0.03
        self.requirements = ""
        """The user's costs and limits, as typed."""
        self.rows: tuple[str, ...] | None = None
        """The paper's rows on display; None for the first one."""
        self.pair: int | None = None
        """The index of the run that is compared with the baseline; None for the first model, else the first policy."""
        self.computed: _Results | None = None
        self.paper: Table | str = "computing …"
        """The table with the paper's rows, or a message."""
        self.paper_models: tuple[str, ...] = ()

    def on_mount(self) -> None:
        self._show_pane("overview")

    def run_note(self, folder: Path) -> str:
        return " (baseline)" if folder == self.folders[0] else ""

    def body(self) -> ComposeResult:
        with Vertical(id="body"):
            yield TabLine(PANES)
            with ContentSwitcher(initial="overview", id="panes"):
                yield Overview(id="overview")
                yield ResultTable(id="metrics")
                with panel(Vertical(id="flips"), "Which label became which"):
                    yield Static(id="pair")
                    with ScrollableContainer(id="scroll", can_focus=False):
                        yield Matrix(id="matrix")
                yield ResultTable(id="agreement")
                yield ResultTable(id="paper")
                yield ResultTable(id=REMEDIES)
                yield ResultTable(id="cost")
                yield ResultTable(id="ratios")
                with Vertical(id="recommendation"):
                    with panel(VerticalScroll(id="recommendation-scroll"), "Recommendation"):
                        yield Static(id="recommendation-text")
                    yield ResultTable(id="recommendation-table")

    def compute(self) -> None:
        results, folders, judge, margin = self.rashomon.results, self.folders, self.judge, self.margin
        requirements, rule = self.requirements, self.rashomon.settings.rule

        def work() -> _Results:
            comparison = results.comparison(folders, judge)
            recommendation = _recommended(lambda: results.recommendation(folders, judge, margin, requirements, rule))
            return _Results(
                comparison,
                pair_overviews(comparison, recommendation, margin),
                _metrics_table(comparison),
                recommendation,
            )

        self.work(work, self._show)

    def _compute_paper(self) -> None:
        """Compute the pane of the paper, which needs the runs' own tables."""
        results, folders, judge, rows = self.rashomon.results, self.folders, self.judge, self.rows

        def work() -> tuple[tuple[str, ...], Table | str]:
            models = tuple(results.paper_models(folders, judge))
            selected = models[:1] if rows is None else [row for row in rows if row in models]
            if selected:
                return models, results.paper(folders, judge, selected)
            return models, "No row of the paper is selected, or it has none for these tables; p selects rows."

        def show(computed: tuple[tuple[str, ...], Table | str] | str) -> None:
            self.paper_models, self.paper = ((), computed) if isinstance(computed, str) else computed
            self._fill("#paper", self.paper)

        self.work(work, show, group="paper")

    def _show(self, computed: _Results | str) -> None:
        if isinstance(computed, str):
            self.computed = None
            for table in self.query(ResultTable):
                table.show_message(computed)
            self.query_one(Overview).show_message(computed)
            return
        self.computed = computed
        self.refresh_bindings()
        self._show_state()
        self.redraw()
        self._compute_paper()

    def redraw(self) -> None:
        computed = self.computed
        if computed is None:
            return
        overview = self._overview(computed)
        self.query_one(Overview).show(computed.comparison.views, overview, self.folders, self.judge)
        tables = {table.name: table for table in computed.comparison.tables}
        recommendation = computed.recommendation
        contents: dict[str, Table | str] = {
            "#metrics": computed.metrics,
            "#agreement": tables["changes"],
            "#paper": self.paper,
            "#cost": tables["cost"],
            "#ratios": cost_ratios_content(recommendation),
            "#recommendation-table": recommendation if isinstance(recommendation, str) else recommendation.table,
        }
        if REMEDIES in tables:
            contents[f"#{REMEDIES}"] = tables[REMEDIES]
        elif self.pane == REMEDIES:
            self._show_pane("cost")
        for selector, table in contents.items():
            self._fill(selector, table)
        self.query_one(TabLine).replace(self.panes, self.pane)
        self.query_one("#recommendation-text", Static).update(
            recommendation_text(recommendation, overview.tuning_verdict)
        )
        self._show_flips(tables["flips"], computed)

    def _overview(self, computed: _Results) -> PairOverview:
        """Return the overview of the pair on display."""
        pairs = computed.comparison.pairs
        if self.pair is None:
            self.pair = next((number for number, pair in enumerate(pairs) if not pair.second.is_policy), 0)
        self.pair %= len(pairs)
        return computed.overviews[self.pair]

    def _fill(self, selector: str, table: Table | str) -> None:
        """Show a table, or a message, in the pane of ``selector``."""
        widget = self.query_one(selector, ResultTable)
        if isinstance(table, str):
            widget.show_message(table)
        else:
            widget.show(table)

    def _show_flips(self, table: Table, computed: _Results) -> None:
        overview = self._overview(computed)
        pair, flips = overview.pair, overview.label_counts
        change_count = sum(n for (was, now), n in flips.items() if was != now)
        names = literal(pair.first.label, "bold") + Content(" → ") + literal(pair.second.label, "bold")
        count = f": labels differ on {change_count} of {len(pair.shared)} shared instances."
        self.query_one("#flips").border_subtitle = Content(f"Enter lists a cell   {overview.position}".rstrip())
        self.query_one("#pair", Static).update(names + Content(count))
        labels = [label for label in table.columns[:-1] if any(label in cell for cell in flips)]
        self.query_one(Matrix).show(labels, flips)

    # --- panes -----------------------------------------------------------------------------------

    @property
    def panes(self) -> dict[str, str]:
        """The titles of the panes on display by id; remedies have one where the protocols of the runs differ."""
        if self.computed is None or not any(table.name == REMEDIES for table in self.computed.comparison.tables):
            return PANES
        panes = list(PANES.items())
        place = list(PANES).index("cost")
        return dict([*panes[:place], (REMEDIES, "Remedies"), *panes[place:]])

    @property
    def pane(self) -> str:
        """The id of the pane on display."""
        return str(self.query_one("#panes", ContentSwitcher).current)

    def _show_pane(self, pane: str) -> None:
        self.query_one("#panes", ContentSwitcher).current = pane
        self.query_one(TabLine).select(pane)
        # On the last pane it is the text that may need to scroll.
        focus = {
            "overview": self.query_one(Overview).list_,
            "flips": self.query_one(Matrix),
            "recommendation": self.query_one("#recommendation-scroll"),
        }
        self.set_focus(focus.get(pane) or self.query_one(f"#{pane}", ResultTable).rows)
        self.refresh_bindings()

    @on(TabLine.Chosen)
    def _chosen(self, event: TabLine.Chosen) -> None:
        self._show_pane(event.pane)

    @property
    def result_table(self) -> ResultTable:
        selector = {"overview": "#metrics", "flips": "#metrics", "recommendation": "#recommendation-table"}
        return self.query_one(selector.get(self.pane, f"#{self.pane}"), ResultTable)

    def state(self) -> Content:
        warnings = len(self.computed.comparison.warnings) if self.computed else 0
        count = f"! {warnings} warning{'s' if warnings > 1 else ''}   " if warnings else ""
        return Content.styled(count, PARTIAL) + super().state()

    def _show_state(self) -> None:
        super()._show_state()
        self.query_one(Overview).set_state(self.state())

    def _move(self, step: int) -> None:
        names = list(self.panes)
        self._show_pane(names[(names.index(self.pane) + step) % len(names)])

    def action_next(self) -> None:
        self._move(1)

    def action_previous(self) -> None:
        self._move(-1)

    def page_at(self) -> str:
        return self.query_one(Overview).instance if self.pane == "overview" else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "zoom":
            return self.ready and self.pane == "overview"
        if action == "effect":
            return self.computed is not None and bool(self._overview(self.computed).effects)
        return not (action == "pair" and self.computed and len(self.computed.overviews) < 2)

    def action_pair(self) -> None:
        """Compare the next run with the baseline."""
        if self.computed is not None:
            self.pair = self._overview(self.computed).number + 1
            self.redraw()

    def action_baseline(self) -> None:
        """Choose the baseline; of two runs it is the other one."""
        names = [folder.name for folder in self.folders]
        if len(names) == 2:
            self._set_baseline(names[1])
        else:
            self.app.push_screen(ChoiceDialog("Compare the other runs to", names, chosen=names[0]), self._set_baseline)

    def _set_baseline(self, name: str | None) -> None:
        if name is not None and name != self.folders[0].name:
            self.folders = tuple(sorted(self.folders, key=lambda folder: folder.name != name))
            self.pair = None
            self.update_title()
            self.compute()

    def action_flips(self) -> None:
        """List the answers whose label differs, or leave them out."""
        self._toggle(FLIPS)

    def action_texts(self) -> None:
        """List the answers whose text alone differs, or leave them out."""
        self._toggle(TEXTS)

    def action_effect(self) -> None:
        """List the answers lost, those gained, or those of the chosen kinds."""
        if self.pane != "overview":
            self._show_pane("overview")
        elif self.computed is not None:
            self.query_one(Overview).next_effect()

    def _toggle(self, kind: str) -> None:
        if self.pane != "overview":
            self._show_pane("overview")
        elif self.computed is not None:
            self.query_one(Overview).toggle(kind)

    def action_zoom(self) -> None:
        """Show the media of the answer under the cursor as large as the terminal allows."""
        detail = self.query_one(Overview).detail
        zoom(self, detail.question, detail.media)

    def action_published(self) -> None:
        """Choose the paper's rows."""
        if self.computed is None:
            return
        if not self.paper_models:
            self.rashomon.toast("the paper has no rows for these tables")
            return
        selected = self.paper_models[:1] if self.rows is None else self.rows
        dialog = MultipleChoiceDialog("Rows of the paper", self.paper_models, chosen=selected)
        self.app.push_screen(dialog, self._set_rows)

    def _set_rows(self, rows: list[str] | None) -> None:
        if rows is not None:
            self.rows = tuple(rows)
            self._show_pane("paper")
            self._compute_paper()

    def action_wider(self) -> None:
        self._set_margin(next((margin for margin in MARGINS if margin > self.margin), self.margin))

    def action_narrower(self) -> None:
        self._set_margin(next((margin for margin in reversed(MARGINS) if margin < self.margin), self.margin))

    def action_margin(self) -> None:
        """Enter the margin in percentage points."""
        ask_margin(self.rashomon, self.margin, self._set_margin)

    def _set_margin(self, margin: float) -> None:
        self._show_pane("recommendation")
        if margin != self.margin:
            self.margin = margin
            self.compute()

    def action_costs(self) -> None:
        """Enter the costs of mistakes, and limits on memory, time and disk."""
        ask_requirements(self.rashomon, self.requirements, self._set_requirements)

    def _set_requirements(self, text: str) -> None:
        if text != self.requirements:
            self.requirements = text
            self._show_pane("recommendation")
            self.compute()

    @on(Matrix.Selected)
    def _open_cell(self, event: Matrix.Selected) -> None:
        if not event.count:
            self.rashomon.toast("this cell has no instances")
        elif self.computed is not None:
            comparison = self.computed.comparison
            pair = self._overview(self.computed).pair
            screen = FlippedScreen(self.folders, comparison, pair, event.was, event.now)
            self.app.push_screen(screen)

    @on(Overview.Opened)
    def _open_answer(self, event: Overview.Opened) -> None:
        if self.computed is not None:
            views = self.computed.comparison.views
            self.app.push_screen(SideBySideScreen(self.folders, views, event.changes, event.place))


def _recommended(compute: Callable[[], Recommendation]) -> Recommendation | str:
    try:
        return compute()
    except RashomonError as error:
        return str(error)


def _metrics_table(comparison: Comparison) -> Table:
    """Return the metrics side by side; the first notes say which of them differ."""
    table = side_by_side_table(comparison)
    return replace(table, notes=(*headlines(comparison), *table.notes))
