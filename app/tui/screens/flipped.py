"""The instances whose label is another in a second run, and both answers beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.compare.pairs import RunPair
from app.compare.samples import AnswerSummary, InstanceComparison, beside_each_other, flips
from app.compare.tables import Comparison
from app.tui.commands import bindings
from app.tui.hostile_text import literal
from app.tui.screens.base import RashomonScreen
from app.tui.theme import PARTIAL, outcome_look
from app.tui.widgets.matrix import ALL
from app.tui.widgets.picture import Picture
from app.tui.widgets.virtual_table import Column, Row, VirtualTable
from benchmarks.base import Benchmark

_COLUMNS = (
    Column("condition", 14),
    Column("from", 9),
    Column("to", 9),
    Column("the baseline's answer", 0, least=20),
    Column("the run's answer", 0, least=20),
    Column("instance", 30),
)


class FlippedScreen(RashomonScreen):
    """A list of instances; Enter shows the answers of all compared runs to one of them."""

    name_ = "flipped"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(
        self,
        folders: tuple[Path, ...],
        found: Comparison,
        pair: RunPair,
        was: str | None,
        now: str | None,
        judge: str | None,
    ) -> None:
        super().__init__()
        self.folders, self.found, self.pair, self.judge = folders, found, pair, judge
        self._cell = (was, now)
        self.flips = flips(pair, was, now)

    def shown_runs(self) -> tuple[Path, ...]:
        return self.folders

    def heading(self) -> Content:
        was, now = (word or ALL for word in self._cell)
        of = Content.assemble(literal(self.pair.first.label, "bold"), " → ", literal(self.pair.second.label, "bold"))
        return Content.assemble("Flips  ", of, "  ", literal(f"{was} → {now}: {len(self.flips)}"))

    def body(self) -> ComposeResult:
        yield VirtualTable(_COLUMNS, empty="no label is another here", id="flips")

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
    """One instance: its picture, its prompt, and what each run answered."""

    name_ = "answers"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    DEFAULT_CSS = """
    BesideScreen #answers { height: 1fr; }
    BesideScreen #shown, BesideScreen #across { height: auto; }
    BesideScreen #picture { width: 52; height: 18; padding: 0 1; }
    BesideScreen #asked { width: 1fr; height: auto; padding: 0 1; margin-bottom: 1; }
    BesideScreen .answer { width: 1fr; height: auto; padding: 0 1; border-left: outer $panel; margin-bottom: 1; }
    BesideScreen.-narrow #shown, BesideScreen.-narrow #across { layout: vertical; }
    BesideScreen.-narrow .answer, BesideScreen.-narrow #picture, BesideScreen.-narrow #asked { width: 100%; }
    BesideScreen #picture.-none, BesideScreen.-short #picture { display: none; }
    """

    def __init__(self, listed: FlippedScreen, place: int) -> None:
        super().__init__()
        self.listed, self.place = listed, place
        self.read: InstanceComparison | None = None
        self.picture = 0
        """The number of the picture that is shown."""

    def shown_runs(self) -> tuple[Path, ...]:
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
            with Horizontal(id="shown"):
                with Vertical(id="picture"):
                    yield Picture()
                yield Static(id="asked")
            with Horizontal(id="across"):
                for number in range(len(self.listed.found.sides.sides)):
                    yield Static(classes="answer", id=f"answer-{number}")

    def on_mount(self) -> None:
        self._read()
        self.set_focus(self.query_one("#answers"))

    def _read(self) -> None:
        listed, workspace = self.listed, self.rashomon.workspace
        instance, judge = listed.flips[self.place].instance, listed.found.sides.judge
        self.retitle()
        self.in_thread(lambda: beside_each_other(workspace, listed.folders, instance, listed.judge, judge), self._show)

    def _show(self, read: InstanceComparison) -> None:
        self.read = read
        self._show_picture(0)
        sides = self.listed.found.sides
        for number, (side, told) in enumerate(zip(sides.sides, read.told, strict=True)):
            answer = _answer(side.label, told, sides.benchmark, read.instance.condition)
            self.query_one(f"#answer-{number}", Static).update(answer)
        self.query_one("#answers").scroll_home(animate=False)

    def _show_picture(self, number: int) -> None:
        assert self.read is not None
        media = self.read.media
        self.picture = number % len(media) if media else 0
        self.query_one(Picture).show(*(media[self.picture] if media else (None,)))
        # A style set here would win over the one that hides pictures on a short screen.
        self.query_one("#picture").set_class(not media, "-none")
        self.query_one("#asked", Static).update(_asked(self.read, self.picture))

    def action_picture(self) -> None:
        """Show the next of several pictures."""
        if self.read is not None:
            self._show_picture(self.picture + 1)

    def _go_to(self, place: int) -> None:
        if 0 <= place < len(self.listed.flips):
            self.place = place
            self._read()

    def action_next(self) -> None:
        self._go_to(self.place + 1)

    def action_previous(self) -> None:
        self._go_to(self.place - 1)


def _asked(read: InstanceComparison, picture: int) -> Content:
    instance, pictures = read.instance, len(read.media)
    which = f"   picture {picture + 1} of {pictures}, m shows the next" if pictures > 1 else ""
    lines = [literal(f"{instance.condition}   {_pairs(instance.strata)}{which}", "#909090")]
    lines.append(literal(read.prompt, newlines=True, limit=4000))
    lines += [literal(f"{source} says {' | '.join(values)}", PARTIAL) for source, values in instance.references.items()]
    return Content("\n").join(lines)


def _pairs(strata: object) -> str:
    return ", ".join(f"{key} {value}" for key, value in strata.items()) if isinstance(strata, dict) else ""


def _answer(label: str, told: AnswerSummary | None, benchmark: Benchmark, condition: str) -> Content:
    if told is None:
        return literal(label, "bold") + Content("\nwas not asked this.")
    look = outcome_look(benchmark, condition, told.outcome, told.label)
    lines = [literal(label, "bold"), literal(str(look), look.colour)]
    if told.cut:
        lines.append(Content.styled("cut at the token limit", PARTIAL))
    lines.append(literal(told.answer, newlines=True))
    if told.reason:
        lines.append(literal(told.reason, "#909090"))
    return Content("\n").join(lines)
