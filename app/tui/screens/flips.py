"""The screens of flips: instances whose labels differ between two runs, and all runs' answers to one of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, ItemGrid, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.compare.instances import Change, InstanceComparison, compare_instance, flips, read_excerpts
from app.compare.pairs import RunPair
from app.compare.run_view import RunViews
from app.compare.tables import Comparison
from app.tui.commands import bindings
from app.tui.hostile_text import literal
from app.tui.screens.base import RashomonScreen
from app.tui.theme import DIM
from app.tui.widgets.answer_pair import answer_text, label_cell, references_line
from app.tui.widgets.matrix import ALL
from app.tui.widgets.panel import panel
from app.tui.widgets.picture import Picture
from app.tui.widgets.virtual_table import Column, Row, VirtualTable

_COLUMNS = (
    Column("condition", 14),
    Column("from", 11),
    Column("to", 11),
    Column("baseline's answer", 0, min_width=18),
    Column("run's answer", 0, min_width=18),
)
_ANSWER_WIDTH = 26


class FlippedScreen(RashomonScreen):
    """Instances whose labels differ between two runs. Enter shows the answers of all compared runs."""

    name_ = "flipped"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(
        self,
        folders: tuple[Path, ...],
        comparison: Comparison,
        pair: RunPair,
        was: str | None,
        now: str | None,
        judge: str | None,
    ) -> None:
        super().__init__()
        self.folders, self.comparison, self.pair, self.judge = folders, comparison, pair, judge
        self._cell = (was, now)
        self.flips: list[Change] = flips(pair, was, now)

    def displayed_runs(self) -> tuple[Path, ...]:
        return self.folders

    def heading(self) -> Content:
        was, now = (word or ALL for word in self._cell)
        runs = Content.assemble(literal(self.pair.first.label, "bold"), " → ", literal(self.pair.second.label, "bold"))
        return Content.assemble("Flips  ", runs, "  ", literal(f"{was} → {now}: {len(self.flips)}"))

    def body(self) -> ComposeResult:
        yield panel(VirtualTable(_COLUMNS, empty="no labels differ", id="flips"), "Answers whose label differs")

    def on_mount(self) -> None:
        table = self.query_one(VirtualTable)
        table.show(len(self.flips), self._page, keys=[flip.instance for flip in self.flips], threaded=True)
        self.set_focus(table)

    def _page(self, first: int, count: int) -> list[Row]:
        """Return rows of the list, read in a thread."""
        benchmark, changes = self.comparison.views.benchmark, self.flips[first : first + count]
        return [
            [
                flip.condition,
                label_cell(benchmark, flip.condition, flip.was),
                label_cell(benchmark, flip.condition, flip.now),
                excerpts.first,
                excerpts.second,
            ]
            for flip, excerpts in zip(changes, read_excerpts(self.pair, changes), strict=True)
        ]

    @on(VirtualTable.Selected)
    def _open(self, event: VirtualTable.Selected) -> None:
        views = self.comparison.views
        self.app.push_screen(SideBySideScreen(self.folders, views, self.judge, self.flips, event.row))


class SideBySideScreen(RashomonScreen):
    """One instance with its picture and prompt, and the answer of each run."""

    name_ = "answers"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(
        self, folders: tuple[Path, ...], views: RunViews, judge: str | None, changes: Sequence[Change], place: int
    ) -> None:
        super().__init__()
        self.folders, self.views, self.judge = folders, views, judge
        self.changes, self.place = changes, place
        self.comparison: InstanceComparison | None = None
        self.picture = 0
        """The index of the picture on display."""

    def displayed_runs(self) -> tuple[Path, ...]:
        return self.folders

    def heading(self) -> Content:
        change = self.changes[self.place]
        labels = f"{change.was} → {change.now}" if change.is_flip else f"{change.was}, another text"
        return Content.assemble(
            f"Answers  {self.place + 1} of {len(self.changes)}  ",
            literal(change.instance, "bold", limit=80),
            literal(f"  {labels}"),
        )

    def body(self) -> ComposeResult:
        with VerticalScroll(id="answers"):
            with panel(Horizontal(id="input"), "Question"):
                with Vertical(id="picture"):
                    yield Picture()
                yield Static(id="prompt")
            with ItemGrid(id="answer-columns", min_column_width=_ANSWER_WIDTH):
                for number, view in enumerate(self.views.runs):
                    title = Content.assemble(literal(view.label, limit=60), "" if number else " (baseline)")
                    yield panel(Static(classes="answer", id=f"answer-{number}"), title)

    def on_mount(self) -> None:
        self._read()
        self.set_focus(self.query_one("#answers"))

    def _read(self) -> None:
        folders, workspace, judge, judge_id = self.folders, self.rashomon.workspace, self.judge, self.views.judge
        instance = self.changes[self.place].instance
        self.update_title()
        self.in_thread(lambda: compare_instance(workspace, folders, instance, judge, judge_id), self._show)

    def _show(self, comparison: InstanceComparison) -> None:
        self.comparison = comparison
        self._show_picture(0)
        for number, summary in enumerate(comparison.answers):
            answer = answer_text(summary, self.views.benchmark, comparison.instance.condition)
            self.query_one(f"#answer-{number}", Static).update(answer)
        self.query_one("#answers").scroll_home(animate=False)

    def _show_picture(self, number: int) -> None:
        assert self.comparison is not None
        media = self.comparison.media
        self.picture = number % len(media) if media else 0
        self.query_one(Picture).show(*(media[self.picture] if media else (None,)))
        # An inline style would override the rule that hides pictures on a short screen.
        self.query_one("#picture").set_class(not media, "-none")
        self.query_one("#prompt", Static).update(_prompt(self.comparison, self.picture))

    def action_picture(self) -> None:
        """Show the next of several pictures."""
        if self.comparison is not None:
            self._show_picture(self.picture + 1)

    def _go_to(self, place: int) -> None:
        if 0 <= place < len(self.changes):
            self.place = place
            self._read()

    def action_next(self) -> None:
        self._go_to(self.place + 1)

    def action_previous(self) -> None:
        self._go_to(self.place - 1)


def _prompt(comparison: InstanceComparison, picture: int) -> Content:
    instance, pictures = comparison.instance, len(comparison.media)
    position = f"   picture {picture + 1} of {pictures}, m shows the next" if pictures > 1 else ""
    lines = [
        literal(comparison.prompt, newlines=True, limit=4000),
        references_line(instance),
        literal(f"{instance.condition}   {_strata(instance.strata)}{position}", DIM),
    ]
    return Content("\n").join(lines)


def _strata(strata: object) -> str:
    return ", ".join(f"{key} {value}" for key, value in strata.items()) if isinstance(strata, dict) else ""
