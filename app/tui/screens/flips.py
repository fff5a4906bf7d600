"""The screens of flips: instances whose labels differ between two runs, and all runs' answers to one of them."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.compare.instances import AnswerSummary, InstanceComparison, compare_instance, flips
from app.compare.pairs import RunPair
from app.compare.tables import Comparison
from app.tui.commands import bindings
from app.tui.hostile_text import literal
from app.tui.screens.base import RashomonScreen
from app.tui.theme import DIM, PARTIAL, outcome_appearance
from app.tui.widgets.matrix import ALL
from app.tui.widgets.panel import panel
from app.tui.widgets.picture import Picture
from app.tui.widgets.virtual_table import Column, Row, VirtualTable
from benchmarks.base import Benchmark

_COLUMNS = (
    Column("condition", 14),
    Column("from", 9),
    Column("to", 9),
    Column("the baseline's answer", 0, min_width=20),
    Column("the run's answer", 0, min_width=20),
    Column("instance", 30),
)


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
        self.flips = flips(pair, was, now)

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
        table.show(len(self.flips), self._page, keys=[flip.instance for flip in self.flips])
        self.set_focus(table)

    def _page(self, first: int, count: int) -> list[Row]:
        return [
            [flip.condition, flip.was, flip.now, flip.first, flip.second, flip.instance]
            for flip in self.flips[first : first + count]
        ]

    @on(VirtualTable.Selected)
    def _open(self, event: VirtualTable.Selected) -> None:
        self.app.push_screen(SideBySideScreen(self, event.row))


class SideBySideScreen(RashomonScreen):
    """One instance with its picture and prompt, and the answer of each run."""

    name_ = "answers"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self, listed: FlippedScreen, place: int) -> None:
        super().__init__()
        self.listed, self.place = listed, place
        self.comparison: InstanceComparison | None = None
        self.picture = 0
        """The index of the picture on display."""

    def displayed_runs(self) -> tuple[Path, ...]:
        return self.listed.folders

    def heading(self) -> Content:
        flip = self.listed.flips[self.place]
        return Content.assemble(
            f"Answers  {self.place + 1} of {len(self.listed.flips)}  ",
            literal(flip.instance, "bold", limit=80),
            literal(f"  {flip.was} → {flip.now}"),
        )

    def body(self) -> ComposeResult:
        with VerticalScroll(id="answers"):
            with Horizontal(id="input"):
                with Vertical(id="picture"):
                    yield Picture()
                yield Static(id="prompt")
            with Horizontal(id="answer-columns"):
                for number in range(len(self.listed.comparison.views.runs)):
                    yield Static(classes="answer", id=f"answer-{number}")

    def on_mount(self) -> None:
        self._read()
        self.set_focus(self.query_one("#answers"))

    def _read(self) -> None:
        listed, workspace = self.listed, self.rashomon.workspace
        instance, judge = listed.flips[self.place].instance, listed.comparison.views.judge
        self.update_title()
        self.in_thread(lambda: compare_instance(workspace, listed.folders, instance, listed.judge, judge), self._show)

    def _show(self, comparison: InstanceComparison) -> None:
        self.comparison = comparison
        self._show_picture(0)
        views = self.listed.comparison.views
        for number, (view, summary) in enumerate(zip(views.runs, comparison.answers, strict=True)):
            answer = _answer(view.label, summary, views.benchmark, comparison.instance.condition)
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
        if 0 <= place < len(self.listed.flips):
            self.place = place
            self._read()

    def action_next(self) -> None:
        self._go_to(self.place + 1)

    def action_previous(self) -> None:
        self._go_to(self.place - 1)


def _prompt(comparison: InstanceComparison, picture: int) -> Content:
    instance, pictures = comparison.instance, len(comparison.media)
    position = f"   picture {picture + 1} of {pictures}, m shows the next" if pictures > 1 else ""
    lines = [literal(f"{instance.condition}   {_strata(instance.strata)}{position}", DIM)]
    lines.append(literal(comparison.prompt, newlines=True, limit=4000))
    lines += [literal(f"{source} says {' | '.join(values)}", PARTIAL) for source, values in instance.references.items()]
    return Content("\n").join(lines)


def _strata(strata: object) -> str:
    return ", ".join(f"{key} {value}" for key, value in strata.items()) if isinstance(strata, dict) else ""


def _answer(label: str, summary: AnswerSummary | None, benchmark: Benchmark, condition: str) -> Content:
    if summary is None:
        return literal(label, "bold") + Content("\ndoes not include this instance.")
    appearance = outcome_appearance(benchmark, condition, summary.outcome, summary.label)
    lines = [literal(label, "bold"), literal(str(appearance), appearance.colour)]
    if summary.truncated:
        lines.append(Content.styled("truncated at the token limit", PARTIAL))
    lines.append(literal(summary.answer, newlines=True))
    if summary.reason:
        lines.append(literal(summary.reason, DIM))
    return Content("\n").join(lines)
