"""Label: a blind sample of a run's answers, labelled by keys. Nothing tells the model, the condition or other labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.labelling import Sitting, draw
from app.store.run import RunStore
from app.tui.commands import bindings
from app.tui.outside import person
from app.tui.safe import literal
from app.tui.screens.base import RashomonScreen
from app.tui.widgets.dialogs import AskText
from benchmarks.errors import SpecError
from judges.human import annotator_id


class LabelScreen(RashomonScreen):
    """One person's sitting. A number gives a label, and the next answer comes; every label is kept at once."""

    name_ = "label"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    AUTO_FOCUS = "VerticalScroll"
    DEFAULT_CSS = """
    LabelScreen VerticalScroll { height: 1fr; padding: 0 1; }
    LabelScreen #shown { height: auto; max-width: 100; }
    LabelScreen #labels { height: auto; padding: 0 1; background: $surface; text-style: bold; }
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.sitting: Sitting | None = None
        self._busy = False

    def heading(self) -> Content:
        if self.sitting is None:
            return Content("Label")
        who = literal(self.sitting.labelling.judge, "bold", limit=60)
        return Content("Label  as ") + who + Content(f"  {self.sitting.count} of {self.sitting.total} labelled")

    def body(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(id="shown")
        yield Static(id="labels")

    def on_mount(self) -> None:
        self.app.push_screen(
            AskText(
                "Who labels?",
                "Labels are kept under this name. What stands in the answers is to be labelled, never obeyed.",
                value=person(),
                check=_no_name,
            ),
            self._begin,
        )

    def _begin(self, name: str | None) -> None:
        if name is None:
            self.app.call_later(self.rashomon.action_back)
            return
        judge, folder = annotator_id(name.strip()), self.folder

        def begin() -> Sitting:
            with RunStore.open(folder) as store:
                return Sitting(draw(store, judge), store)

        self.query_one("#shown", Static).update(Content("drawing the sample…"))
        self.in_thread(begin, self._begun, group="sitting")

    def _begun(self, sitting: Sitting) -> None:
        self.sitting = sitting
        self._show()

    def _show(self) -> None:
        """Show the answer the sitting is at, or that none is left."""
        self.retitle()
        sitting, text, keys = self.sitting, self.query_one("#shown", Static), self.query_one("#labels", Static)
        if sitting is None:
            return
        shown = sitting.shown
        if shown is None:
            text.update(Content("All of the sample is labelled. The tables show how the judges agree with it."))
            keys.update(Content("u takes the last one back"))
            return
        parts = [_heading("Question"), literal(shown.question, newlines=True)]
        for source, values in shown.references:
            parts += [_heading(source.capitalize()), literal(" | ".join(values), newlines=True)]
        parts += [_heading("Answer"), literal(shown.answer, newlines=True)]
        text.update(Content("\n").join(parts))
        numbered = "   ".join(f"{number} {label}" for number, label in enumerate(shown.labels[:9], 1))
        keys.update(literal(numbered))
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_give(self, number: str) -> None:
        """Give the answer the label of that number. Here the numbers are labels, not screens."""
        labels = () if self.sitting is None or self.sitting.shown is None else self.sitting.labelling.benchmark.labels
        if int(number) <= len(labels):
            self._give(labels[int(number) - 1])

    def action_skip(self) -> None:
        if self.sitting is not None and self.sitting.shown is not None:
            self._give(None)

    def action_undo(self) -> None:
        if self.sitting is None:
            return
        undo = self.sitting.undo
        self._write(undo, lambda found: None if found else self.rashomon.tell("there is nothing to undo"))

    def _give(self, label: str | None) -> None:
        if self.sitting is not None:
            give = self.sitting.give
            self._write(lambda store: give(store, label), lambda _: None)

    def _write(self, what: Callable[[RunStore], object], then: Callable[[object], None]) -> None:
        """Do something to the run in a thread; keys that come before it is done are not for the next answer."""
        if self._busy:
            return
        self._busy = True
        folder = self.folder

        def work() -> object:
            try:
                with RunStore.open(folder) as store:
                    return what(store)
            finally:
                self._busy = False

        def done(result: object) -> None:
            then(result)
            self._show()

        self.in_thread(work, done, group="label")


def _no_name(text: str) -> str:
    try:
        annotator_id(text.strip())
    except SpecError as error:
        return str(error)
    return ""


def _heading(text: str) -> Content:
    return literal(f"\n{text}", "bold #56b4e9", newlines=True)
