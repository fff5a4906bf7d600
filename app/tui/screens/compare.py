"""Compare: runs side by side: figures, differences, flips, agreement, the paper's rows, memory and speed, and which to take."""

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

from app.compare.recommend import Recommendation, points
from app.compare.side_by_side import beside
from app.compare.tables import Comparison
from app.tui.commands import bindings
from app.tui.hostile_text import literal
from app.tui.screens.flipped import FlippedScreen
from app.tui.screens.results import ResultsScreen
from app.tui.theme import DIM, PARTIAL
from app.tui.widgets.choose import MultipleChoiceDialog
from app.tui.widgets.dialogs import TextDialog
from app.tui.widgets.matrix import Matrix
from app.tui.widgets.result_table import ResultTable
from benchmarks.base import Table
from benchmarks.errors import RashomonError

PANES = {
    "figures": "Figures",
    "flips": "Flips",
    "agreement": "Agreement",
    "paper": "The paper",
    "cost": "Memory, speed",
    "take": "Which to take",
}
MARGINS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2)


@dataclass(frozen=True, slots=True)
class _Made:
    """All of a comparison that is shown. ``paper`` and ``take`` are sentences where there is none."""

    found: Comparison
    figures: Table
    paper: Table | str
    models: tuple[str, ...]
    take: Recommendation | str


class CompareScreen(ResultsScreen):
    """Two runs or more, the first of them the baseline."""

    name_ = "compare"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    DEFAULT_CSS = """
    CompareScreen #warnings { height: auto; max-height: 8; padding: 0 1; color: $warning; }
    CompareScreen.-short #warnings { max-height: 2; }
    CompareScreen #names { height: 1; margin-bottom: 1; }
    CompareScreen.-short #names { margin-bottom: 0; }
    CompareScreen ContentSwitcher { height: 1fr; }
    CompareScreen #pair { height: auto; padding: 0 1; }
    CompareScreen #scroll { height: 1fr; }
    CompareScreen #words { height: auto; max-height: 60%; padding: 0 1; }
    """

    def __init__(self, folders: tuple[Path, ...]) -> None:
        super().__init__(folders)
        self.margin = 0.03
        self.rows: tuple[str, ...] | None = None
        """The paper's rows that stand beside; None: its first one."""
        self.pair = 0
        self.made: _Made | None = None

    def on_mount(self) -> None:
        self._go_to("figures")

    def body(self) -> ComposeResult:
        with Vertical(id="body"):
            yield Static(id="state")
            with VerticalScroll(id="warnings"):
                yield Static(id="warned")
            yield Static(id="names")
            with ContentSwitcher(initial="figures", id="panes"):
                yield ResultTable(id="figures")
                with Vertical(id="flips"):
                    yield Static(id="pair")
                    with ScrollableContainer(id="scroll", can_focus=False):
                        yield Matrix(id="matrix")
                yield ResultTable(id="agreement")
                yield ResultTable(id="paper")
                yield ResultTable(id="cost")
                with Vertical(id="take"):
                    with VerticalScroll(id="words"):
                        yield Static(id="worded")
                    yield ResultTable(id="take-table")

    def compute(self) -> None:
        results, folders, judge, margin, rows = self.rashomon.results, self.folders, self.judge, self.margin, self.rows

        def make() -> _Made:
            found = results.comparison(folders, judge)
            models = tuple(results.paper_models(folders, judge))
            chosen = models[:1] if rows is None else rows
            paper: Table | str = "The paper has no row of these tables; b chooses rows where it has."
            if chosen:
                paper = results.paper(folders, judge, chosen)
            take = _recommended(lambda: results.recommendation(folders, judge, margin))
            return _Made(found, beside(found), paper, models, take)

        self.work(make, self._show)

    def _show(self, made: _Made | str) -> None:
        if isinstance(made, str):
            self.made = None
            for table in self.query(ResultTable):
                table.say(made)
            return
        self.made = made
        self.rows = tuple(row for row in self.rows if row in made.models) if self.rows else self.rows
        self.redraw()

    def redraw(self) -> None:
        made = self.made
        if made is None:
            return
        warned = [literal(f"! {warning}") for warning in made.found.warnings]
        self.query_one("#warned", Static).update(Content("\n").join(warned))
        self.query_one("#warnings").display = bool(warned)
        tables = {table.name: table for table in made.found.tables}
        shown: dict[str, Table | str] = {
            "figures": made.figures,
            "agreement": tables["changes"],
            "paper": made.paper,
            "cost": tables["cost"],
            "take": made.take if isinstance(made.take, str) else made.take.table,
        }
        for pane, table in shown.items():
            widget = self.query_one("#take-table" if pane == "take" else f"#{pane}", ResultTable)
            if isinstance(table, str):
                widget.say(table)
            else:
                widget.show(table, intervals=self.intervals)
        self.query_one("#worded", Static).update(_words(made.take))
        self._show_flips(tables["flips"])

    def _show_flips(self, table: Table) -> None:
        assert self.made is not None
        pairs = self.made.found.pairs
        self.pair %= len(pairs)
        pair = pairs[self.pair]
        flips = pair.flips()
        changed = sum(n for (was, now), n in flips.items() if was != now)
        more = f"   (run {self.pair + 1} of {len(pairs)}; b shows the next)" if len(pairs) > 1 else ""
        told = literal(pair.first.label, "bold") + Content(" → ") + literal(pair.second.label, "bold")
        of = f": {changed} of {len(pair.shared)} shared instances have another label. Enter lists a cell's.{more}"
        self.query_one("#pair", Static).update(told + Content(of))
        words = [word for word in table.columns[:-1] if any(word in cell for cell in flips)]
        self.query_one(Matrix).show(words, flips)

    # --- panes -----------------------------------------------------------------------------------

    @property
    def pane(self) -> str:
        """The pane that is shown."""
        return str(self.query_one("#panes", ContentSwitcher).current)

    def _go_to(self, pane: str) -> None:
        self.query_one("#panes", ContentSwitcher).current = pane
        names = (f" {title} " for title in PANES.values())
        styles = ("bold reverse" if name == pane else DIM for name in PANES)
        told = (Content.styled(name, style) for name, style in zip(names, styles, strict=True))
        self.query_one("#names", Static).update(Content(" ").join(told))
        # On the last one it is the words that are longer than the screen.
        places = {"flips": self.query_one(Matrix), "take": self.query_one("#words")}
        self.set_focus(places.get(pane) or self.query_one(f"#{pane}", ResultTable).rows)

    def _go_by(self, by: int) -> None:
        names = list(PANES)
        self._go_to(names[(names.index(self.pane) + by) % len(names)])

    def action_next(self) -> None:
        self._go_by(1)

    def action_previous(self) -> None:
        self._go_by(-1)

    def action_beside(self) -> None:
        """On Flips the next run; else which of the paper's rows stand beside."""
        made = self.made
        if made is None:
            return
        if self.pane == "flips":
            self.pair += 1
            self.redraw()
        elif not made.models:
            self.rashomon.tell("the paper has no rows to stand beside these")
        else:
            chosen = made.models[:1] if self.rows is None else self.rows
            self.app.push_screen(
                MultipleChoiceDialog("Which of the paper's rows?", made.models, chosen=chosen), self._take_rows
            )

    def _take_rows(self, rows: list[str] | None) -> None:
        if rows is not None:
            self.rows = tuple(rows)
            self._go_to("paper")
            self.compute()

    def action_wider(self) -> None:
        self._set_margin(next((margin for margin in MARGINS if margin > self.margin), self.margin))

    def action_narrower(self) -> None:
        self._set_margin(next((margin for margin in reversed(MARGINS) if margin < self.margin), self.margin))

    def action_margin(self) -> None:
        """Type the margin, in points of a hundred."""

        def typed(text: str | None) -> None:
            if text is not None:
                self._set_margin(float(text) / 100)

        heading = "How many points worse than the best may a run be?"
        ask = TextDialog(heading, "Choose it before you look.", value=points(self.margin), check=_wrong_margin)
        self.app.push_screen(ask, typed)

    def _set_margin(self, margin: float) -> None:
        self._go_to("take")
        if margin != self.margin:
            self.margin = margin
            self.compute()

    @on(Matrix.Selected)
    def _cell(self, event: Matrix.Selected) -> None:
        if not event.count:
            self.rashomon.tell("no instance is behind this cell")
        elif self.made is not None:
            found = self.made.found
            screen = FlippedScreen(self.folders, found, found.pairs[self.pair], event.was, event.now, self.judge)
            self.app.push_screen(screen)


def _recommended(make: Callable[[], Recommendation]) -> Recommendation | str:
    try:
        return make()
    except RashomonError as error:
        return str(error)


def _wrong_margin(text: str) -> str:
    try:
        return "" if 0 < float(text) < 100 else "More than 0 and less than 100, as in 3."
    except ValueError:
        return "A number of points, as in 3 or 0.5."


def _words(take: Recommendation | str) -> Content:
    if isinstance(take, str):
        return Content("")
    told = [literal(line, "bold") for line in take.take]
    told.append(
        Content(f"Margin: {points(take.decision.margin)} points; + and - change it, m types it.").stylize("#909090")
    )
    for title, lines in (("What it does otherwise", take.does), ("What cannot be said", take.unknown)):
        if lines:
            told += [Content.styled(title, f"bold {PARTIAL}"), *(literal(f"- {line}") for line in lines)]
    return Content("\n").join(told)
