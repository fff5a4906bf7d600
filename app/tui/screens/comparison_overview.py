"""Overview of a comparison: the recommendation, differences by condition, and the answers that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from app.compare.differences.instance_comparison import Change, InstanceComparison, compare_instance, read_excerpts
from app.compare.differences.lost_and_gained import GAINED, LOST
from app.compare.pair_overview import PairOverview
from app.compare.runs.run_view import RunViews
from app.tui.hostile_text import literal
from app.tui.latest_only import LatestOnly
from app.tui.screens.base_screen import RashomonScreen
from app.tui.theme import DIM, PARTIAL
from app.tui.widgets.answer_pair import AnswerPair, label_cell
from app.tui.widgets.forest_plot import ForestPlot, ForestRow
from app.tui.widgets.table_columns import Column, Row
from app.tui.widgets.titled_panel import panel, set_panel_title
from app.tui.widgets.virtual_table import VirtualTable
from benchmarks.errors import RashomonError

FLIPS, TEXTS = "flips", "texts"
"""The kinds of differing answers: other labels, and other texts under the same label."""
_OTHER_TEXT = "other text"
_MAX_CONDITION, _MAX_LABEL = 20, 14


class Overview(Vertical):
    """What differs between a baseline and a run, and which run is recommended; set by :meth:`show`."""

    class Opened(Message):
        """An answer was opened; ``changes`` are those listed."""

        def __init__(self, changes: Sequence[Change], place: int) -> None:
            self.changes, self.place = changes, place
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.kinds = {FLIPS}
        """The kinds of answers listed; at least one."""
        self.effect = ""
        """The effect of the answers listed instead, a key of :attr:`PairOverview.effects`; empty for none."""
        self.changes: Sequence[Change] = ()
        """The answers listed."""
        self._content: PairOverview | None = None
        self._views: RunViews | None = None
        self._folders: tuple[Path, ...] = ()
        self._judge: str | None = None
        self._texts: list[Change] | None = None
        """The changes of text; None until they have been read."""
        self._both: list[Change] = []
        """The flips and the changes of text, in the baseline's order."""
        self._reader: LatestOnly | None = None

    def compose(self) -> ComposeResult:
        with panel(VerticalScroll(id="advice"), "Recommendation"):
            yield Static(id="advice-text")
        with panel(VerticalScroll(id="conditions")):
            yield ForestPlot()
        with Horizontal(id="differing"):
            yield panel(VirtualTable(_columns((), ()), empty="computing …", id="changes"))
            yield AnswerPair(id="detail")

    def on_mount(self) -> None:
        self._reader = LatestOnly(self._screen, "detail")

    @property
    def _screen(self) -> RashomonScreen:
        assert isinstance(self.screen, RashomonScreen)
        return self.screen

    @property
    def list_(self) -> VirtualTable:
        """The list of answers, for the focus."""
        return self.query_one("#changes", VirtualTable)

    def show_message(self, message: str) -> None:
        """Show a message, which may be hostile, in place of results."""
        self._content = self._texts = None
        self.query_one("#advice-text", Static).update(literal(message))
        self.query_one(ForestPlot).show(())
        set_panel_title(self.query_one("#conditions"), "")
        self._list()

    @property
    def detail(self) -> AnswerPair:
        """The answers to the instance under the cursor."""
        return self.query_one(AnswerPair)

    @property
    def instance(self) -> str:
        """The id of the instance under the cursor; empty without one."""
        place = self.list_.cursor
        return self.changes[place].instance if place < len(self.changes) else ""

    def set_state(self, state: Content) -> None:
        """Show ``state`` in the border of the recommendation."""
        self.query_one("#advice").border_subtitle = state

    def show(self, views: RunViews, content: PairOverview, folders: tuple[Path, ...], judge: str | None) -> None:
        """Show a pair of the runs in ``folders``, which are those of ``views``, labelled by ``judge``."""
        if self._content is None or content.pair is not self._content.pair:
            self._texts = None
        self._views, self._content, self._folders, self._judge = views, content, folders, judge
        pair = content.pair
        lines = [literal(content.verdict, "bold")]
        lines += [literal(f"! {warning}", PARTIAL) for warning in content.warnings]
        self.query_one("#advice-text", Static).update(Content("\n").join(lines))
        conditions = self.query_one("#conditions")
        run, baseline = literal(pair.second.label, limit=60), literal(pair.first.label, limit=60)
        set_panel_title(
            conditions, Content.assemble("Benchmark accuracy: ", run, " minus ", baseline, ", points [95% CI]")
        )
        conditions.border_subtitle = Content(content.position)
        rows = [ForestRow(row.condition, row.difference) for row in content.differences]
        self.query_one(ForestPlot).show(rows)
        self._list()
        if TEXTS in self.kinds:
            self._read_texts()

    # --- the answers that differ -----------------------------------------------------------------

    def toggle(self, kind: str) -> None:
        """List the answers of a kind, or leave them out; the last kind listed is replaced by the other."""
        self.effect, self.kinds = "", self.kinds if self.effect else self.kinds ^ {kind}
        if not self.kinds:
            self.kinds = {FLIPS, TEXTS} - {kind}
        self._list()
        if TEXTS in self.kinds:
            self._read_texts()

    def next_effect(self) -> None:
        """List the answers lost, then those gained, then those of the kinds again."""
        self.effect = next_effect(self.effect, self._content.effects if self._content is not None else {})
        self._list()

    def _read_texts(self) -> None:
        """Find the changes of text, which are read from both runs."""
        content, results = self._content, self._screen.rashomon.results
        if self._texts is not None or content is None:
            return
        folders, judge = self._folders, self._judge

        def read() -> tuple[list[Change], list[Change]]:
            texts = results.text_changes(folders, judge, content.number)
            both = [*content.flips, *texts]
            places = content.pair.first.coded.places([change.instance for change in both])
            return texts, [both[number] for number in places.argsort()]

        def show(changes: tuple[list[Change], list[Change]]) -> None:
            if content is self._content:
                self._texts, self._both = changes
                self._list()

        self._screen.attempt(read, show, group="texts")

    def _list(self) -> None:
        """List the answers of the chosen kinds, in the baseline's order."""
        content = self._content
        changes: Sequence[Change] = ()
        if content is not None and self.effect in content.effects:
            changes = content.effects[self.effect]
        elif content is not None:
            changes = content.flips if FLIPS in self.kinds else ()
            if TEXTS in self.kinds and self._texts is not None:
                changes = self._both if FLIPS in self.kinds else self._texts
        self.changes = changes
        table = self.list_
        set_panel_title(table, self._title())
        reading = TEXTS in self.kinds and self._texts is None and not self.effect
        table.empty = "" if content is None else "◐ reading the answers …" if reading else self._nothing_listed()
        keys = [change.instance for change in changes]
        columns = _columns(self._views.benchmark.conditions, self._views.benchmark.labels) if self._views else None
        table.show(len(changes), self._page, keys=keys, threaded=True, columns=columns)
        self._show_detail(table.cursor)

    def _nothing_listed(self) -> str:
        """Return the line of an empty list."""
        if self.effect:
            return f"No answer is {self.effect}."
        if self.kinds == {FLIPS}:
            return "No label differs; c lists answers whose text differs."
        return "No answer differs." if FLIPS in self.kinds else "No text alone differs."

    def _title(self) -> Content:
        if self._content is None:
            return Content("Answers that differ")
        title = Content("Differ:" if self._content.effects else "Answers differ:")
        reading = " ◐" if TEXTS in self.kinds else ""
        text_count = reading if self._texts is None else f" {len(self._texts):,}"
        names = {FLIPS: f"f label {len(self._content.flips):,}", TEXTS: f"c text alone{text_count}"}
        for kind, name in names.items():
            title += _ticked(kind in self.kinds and not self.effect, name)
        if self._content.effects:
            counts = {effect: f"{len(changes):,}" for effect, changes in self._content.effects.items()}
            name = f"{self.effect} {counts[self.effect]}" if self.effect else f"-{counts[LOST]} +{counts[GAINED]}"
            title += _ticked(bool(self.effect), f"x {name}")
        return title

    def _page(self, first: int, count: int) -> list[Row]:
        """Return rows of the list, read in a thread."""
        content, views, changes = self._content, self._views, self.changes[first : first + count]
        if content is None or views is None:
            return []
        try:
            questions = [excerpts.question for excerpts in read_excerpts(content.pair, changes)]
        except RashomonError as error:
            questions = [str(error)] * len(changes)
        return [
            [
                change.condition,
                label_cell(views.benchmark, change.condition, change.was),
                label_cell(views.benchmark, change.condition, change.now) if change.is_flip else [(_OTHER_TEXT, DIM)],
                question,
            ]
            for change, question in zip(changes, questions, strict=True)
        ]

    @on(VirtualTable.Moved, "#changes")
    def _moved(self, event: VirtualTable.Moved) -> None:
        event.stop()
        self._show_detail(event.row)

    @on(VirtualTable.Selected, "#changes")
    def _selected(self, event: VirtualTable.Selected) -> None:
        event.stop()
        self.post_message(self.Opened(self.changes, event.row))

    def _show_detail(self, place: int) -> None:
        """Show both answers to the instance at ``place`` of the list."""
        content, views, detail = self._content, self._views, self.detail
        if content is None or views is None or not 0 <= place < len(self.changes):
            detail.show_message(Content(""))
            return
        pair, workspace = content.pair, self._screen.rashomon.workspace
        folders = [self._folders[views.runs.index(run)] for run in (pair.first, pair.second)]
        instance = self.changes[place].instance
        labels = (f"{pair.first.label} (baseline)", pair.second.label)

        def read() -> InstanceComparison | str:
            try:
                return compare_instance(workspace, folders, instance, views.judge)
            except RashomonError as error:
                return str(error)

        def show(comparison: InstanceComparison | str) -> None:
            if isinstance(comparison, str):
                detail.show_message(literal(comparison))
            else:
                detail.show_pair(comparison, labels, views.benchmark)

        assert self._reader is not None
        self._reader.submit(read, show)


def next_effect(effect: str, effects: Mapping[str, Sequence[Change]]) -> str:
    """Return the effect after this one, "" after the last."""
    choices = ["", *effects]
    return choices[(choices.index(effect) + 1) % len(choices)] if effect in choices else ""


def _ticked(listed: bool, name: str) -> Content:
    return Content("  ") + Content.styled(f"{'■' if listed else '□'} {name}", "" if listed else DIM)


def _columns(conditions: Sequence[str], labels: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of the list, as wide as a benchmark's conditions and labels with their glyphs need."""
    condition_width = min(_MAX_CONDITION, max(map(len, ("condition", *conditions))))
    label_width = min(_MAX_LABEL, max(map(len, (_OTHER_TEXT, *(f"✓ {label}" for label in labels)))))
    return (
        Column("condition", condition_width),
        Column("baseline", label_width),
        Column("run", label_width),
        Column("question", 0, distinct=True),
    )
