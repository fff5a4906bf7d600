"""The screens of flips: instances whose labels differ between two runs, and all runs' answers to one of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import ItemGrid, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.compare.comparison_tables import Comparison
from app.compare.differences.instance_comparison import (
    Change,
    InstanceComparison,
    compare_instance,
    flips,
    lost_and_gained,
    read_excerpts,
)
from app.compare.runs.run_pairs import RunPair
from app.compare.runs.run_view import RunViews
from app.tui.hostile_text import literal
from app.tui.key_commands import bindings
from app.tui.screens.base_screen import RashomonScreen
from app.tui.screens.comparison_overview import next_effect
from app.tui.screens.zoom_screen import zoom
from app.tui.theme import DIM
from app.tui.widgets.answer_pair import answer_text, label_cell
from app.tui.widgets.count_matrix import ALL
from app.tui.widgets.sample_text import heading, references_text
from app.tui.widgets.sample_view import SampleView, number_media
from app.tui.widgets.table_columns import Column, Row
from app.tui.widgets.titled_panel import panel, set_panel_title
from app.tui.widgets.virtual_table import VirtualTable

_COLUMNS = (
    Column("condition", 14),
    Column("from", 11),
    Column("to", 11),
    Column("baseline's answer", 0, min_width=18),
    Column("run's answer", 0, min_width=18),
    Column("question", 0, distinct=True),
)
_QUESTION_WIDTH = 100
"""The width of the screen from which the list has a column for questions."""
_ANSWER_WIDTH = 26
_PROMPT_LIMIT = 4000


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
    ) -> None:
        super().__init__()
        self.folders, self.comparison, self.pair = folders, comparison, pair
        self._cell = (was, now)
        self._all: list[Change] = flips(pair, was, now)
        self.flips = self._all
        """The instances listed."""
        self._effects = {
            effect: [change for change in changes if was in (None, change.was) and now in (None, change.now)]
            for effect, changes in lost_and_gained(pair, comparison.views.benchmark).items()
        }
        self._effect = ""
        """The effect of the instances listed, a key of ``_effects``; empty for any."""

    def displayed_runs(self) -> tuple[Path, ...]:
        return self.folders

    def page_at(self) -> str:
        place = self.query_one(VirtualTable).cursor
        return self.flips[place].instance if place < len(self.flips) else ""

    def page_judge(self) -> str:
        return _judge_below(self)

    def heading(self) -> Content:
        was, now = (word or ALL for word in self._cell)
        runs = Content.assemble(literal(self.pair.first.label, "bold"), " → ", literal(self.pair.second.label, "bold"))
        effect = f", {self._effect}" if self._effect else ""
        return Content.assemble("Flips  ", runs, "  ", literal(f"{was} → {now}{effect}: {len(self.flips)}"))

    def body(self) -> ComposeResult:
        yield panel(VirtualTable(empty="no labels differ", id="flips"), "Answers whose label differs")

    def on_mount(self) -> None:
        self._show()
        self.set_focus(self.query_one(VirtualTable))

    def on_resize(self) -> None:
        if self.ready:
            self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "effect" or bool(self._effects)

    def action_effect(self) -> None:
        """List the answers lost, those gained, or all."""
        self._effect = next_effect(self._effect, self._effects)
        self.flips = self._effects[self._effect] if self._effect else self._all
        self.update_title()
        self._show(again=True)

    def _show(self, *, again: bool = False) -> None:
        columns = _COLUMNS if self.size.width >= _QUESTION_WIDTH else _COLUMNS[:-1]
        table, keys = self.query_one(VirtualTable), [flip.instance for flip in self.flips]
        if again or columns != table.columns:
            table.show(len(self.flips), self._page, keys=keys, threaded=True, columns=columns)

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
                excerpts.question,
            ]
            for flip, excerpts in zip(changes, read_excerpts(self.pair, changes), strict=True)
        ]

    @on(VirtualTable.Selected)
    def _open(self, event: VirtualTable.Selected) -> None:
        views = self.comparison.views
        self.app.push_screen(SideBySideScreen(self.folders, views, self.flips, event.row))


class SideBySideScreen(RashomonScreen):
    """One instance with its picture and prompt, and the answer of each run."""

    name_ = "answers"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self, folders: tuple[Path, ...], views: RunViews, changes: Sequence[Change], place: int) -> None:
        super().__init__()
        self.folders, self.views = folders, views
        self.changes, self.place = changes, place
        self.comparison: InstanceComparison | None = None
        self.view = SampleView()

    def displayed_runs(self) -> tuple[Path, ...]:
        return self.folders

    def page_at(self) -> str:
        return self.changes[self.place].instance

    def page_judge(self) -> str:
        return _judge_below(self)

    def heading(self) -> Content:
        change = self.changes[self.place]
        labels = f"{change.was} → {change.now}" if change.is_flip else f"{change.was}, another text"
        return Content.assemble(
            f"Answers  {self.place + 1} of {len(self.changes)}  ",
            literal(change.instance, "bold", limit=80),
            literal(f"  {labels}"),
        )

    def body(self) -> ComposeResult:
        yield panel(self.view, "Instance")
        with VerticalScroll(id="answers"), ItemGrid(id="answer-columns", min_column_width=_ANSWER_WIDTH):
            for number, view in enumerate(self.views.runs):
                title = literal(view.label, limit=60)
                answer = panel(Static(classes="answer", id=f"answer-{number}"), title)
                answer.border_subtitle = Content("" if number else "baseline")
                yield answer

    def on_mount(self) -> None:
        self._read()
        self.set_focus(self.query_one("#answers"))

    def _read(self) -> None:
        folders, workspace, judge_id = self.folders, self.rashomon.workspace, self.views.judge
        instance = self.changes[self.place].instance
        self.update_title()
        self.attempt(lambda: compare_instance(workspace, folders, instance, judge_id), self._show)

    def _show(self, comparison: InstanceComparison) -> None:
        self.comparison = comparison
        instance = comparison.instance
        set_panel_title(self.view, literal(instance.condition))
        for number, summary in enumerate(comparison.answers):
            answer = answer_text(summary, self.views.benchmark, instance.condition)
            self.query_one(f"#answer-{number}", Static).update(answer)
        self.query_one("#answers").scroll_home(animate=False)
        question = literal(instance.question, "bold", newlines=True, limit=_PROMPT_LIMIT)
        self.view.show(instance.id, question, number_media(comparison.media), _instance_text(comparison))

    def action_zoom(self) -> None:
        """Show the media as large as the terminal allows."""
        zoom(self, self.view.question, self.view.media)

    def _go_to(self, place: int) -> None:
        if 0 <= place < len(self.changes):
            self.place = place
            self._read()

    def action_next(self) -> None:
        self._go_to(self.place + 1)

    def action_previous(self) -> None:
        self._go_to(self.place - 1)


def _instance_text(comparison: InstanceComparison) -> Content:
    """Return the references, the strata, and the prompt of an instance."""
    instance = comparison.instance
    strata = "  ".join(f"{key}: {value}" for key, value in instance.strata.items())
    lines = [
        references_text(instance.references.items()),
        heading("Prompt"),
        literal(comparison.prompt, newlines=True, limit=_PROMPT_LIMIT),
        literal(strata, DIM, limit=600),
    ]
    return Content("\n").join(lines)


def _judge_below(screen: RashomonScreen) -> str:
    """Return the judge that was chosen on the screen from which this one was opened."""
    stack = screen.app.screen_stack
    below = stack[stack.index(screen) - 1]
    return below.page_judge() if isinstance(below, RashomonScreen) else ""
