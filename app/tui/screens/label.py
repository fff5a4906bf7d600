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

from app.annotation.session import LabellingSession, draw
from app.store.run import RunStore
from app.tui.commands import Command, bindings, commands_of
from app.tui.hostile_text import literal
from app.tui.keymap import shown_keys
from app.tui.open_external import person
from app.tui.screens.base import RashomonScreen
from app.tui.widgets.dialogs import Confirm, TextDialog
from app.tui.widgets.painted import Painted
from benchmarks.errors import RashomonError, SpecError
from judges.human_labels import annotator_id


class LabelScreen(RashomonScreen):
    """One person's labelling. A letter gives a label, and the next answer comes; every label is kept at once."""

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
        self.sitting: LabellingSession | None = None
        self._busy = False
        self._given = 0
        """How many labels were given here and not taken back."""
        self._text = Painted(id="shown")

    def shown_runs(self) -> tuple[Path, ...]:
        return (self.folder,)

    def heading(self) -> Content:
        told = Content("Label  ") + literal(self.folder.name, "bold", limit=60)
        if self.sitting is None:
            return told
        who = literal(self.sitting.labelling.judge, "bold", limit=60)
        return told + Content("  as ") + who + Content(f"  {self.sitting.count} of {self.sitting.total} labelled")

    def body(self) -> ComposeResult:
        with VerticalScroll():
            yield self._text
        yield Static(id="labels")

    def on_mount(self) -> None:
        self.app.push_screen(
            TextDialog(
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

        def begin() -> LabellingSession:
            with RunStore.open(folder) as store:
                return LabellingSession(draw(store, judge), store)

        self._text.update(Content("drawing the sample…"))
        self.in_thread(begin, self._begun, group="sitting")

    def _begun(self, sitting: LabellingSession) -> None:
        self.sitting = sitting
        self._show()

    def _show(self) -> None:
        """Show the answer the sitting is at, or that none is left."""
        self.retitle()
        self.refresh_bindings()
        sitting, text, keys = self.sitting, self._text, self.query_one("#labels", Static)
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
        named = (f"{self._key(number)} {label}" for number, label in enumerate(shown.labels, 1))
        told = f"\n{sitting.labelling.enough}" if sitting.labelling.enough else ""
        keys.update(literal("   ".join(named) + told, newlines=True))
        self.query_one(VerticalScroll).scroll_home(animate=False)

    @property
    def _labels(self) -> tuple[str, ...]:
        """The labels that can be given."""
        return () if self.sitting is None or self.sitting.shown is None else tuple(self.sitting.shown.labels)

    def _key(self, number: int) -> str:
        """The key that gives the label of that number, as people write it."""
        (command,) = (command for command in commands_of(self.name_) if command.id == f"label.give.{number}")
        return shown_keys(command, self.rashomon.keys)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "give":
            return int(str(parameters[0])) <= len(self._labels)
        if action == "skip":
            return bool(self._labels)
        return action != "undo" or (self.sitting is not None and self.sitting.count > 0)

    def describe(self, command: Command) -> str | None:
        number = command.id.removeprefix("label.give.")
        if not number.isdecimal():
            return command.title
        return self._labels[int(number) - 1] if int(number) <= len(self._labels) else None

    def action_give(self, number: str) -> None:
        """Give the answer the label of that number."""
        self._give(self._labels[int(number) - 1])

    def action_skip(self) -> None:
        self._give(None)

    def action_undo(self) -> None:
        if self._given:
            self._undo(True)
        else:
            text = "It was given before this screen was opened, and is set aside; the answer comes again."
            self.app.push_screen(Confirm("Take the last label back?", text, yes="Take back"), self._undo)

    def _undo(self, yes: bool | None) -> None:
        if yes and self.sitting is not None:
            self._write(self.sitting.undo, -1)

    def _give(self, label: str | None) -> None:
        """Keep a label, if the answer was on the terminal when its key was pressed."""
        if self.sitting is not None and self._text.displayed:
            give = self.sitting.give
            self._write(lambda store: give(store, label), 1)

    def _write(self, what: Callable[[RunStore], object], given: int) -> None:
        """Give or take back a label in a thread, unless one is being written; keys pressed meanwhile are for no answer."""
        if self._busy:
            return
        self._busy = True
        self._text.unpaint()
        folder = self.folder

        def done(error: RashomonError | None) -> None:
            self._busy = False
            self._show()
            if error is None:
                self._given = max(0, self._given + given)
            else:
                self.rashomon.failed(error)

        def tried() -> RashomonError | None:
            try:
                with RunStore.open(folder) as store:
                    what(store)
            except RashomonError as error:
                return error
            return None

        self.in_thread(tried, done, group="label")


def _no_name(text: str) -> str:
    try:
        annotator_id(text.strip())
    except SpecError as error:
        return str(error)
    return ""


def _heading(text: str) -> Content:
    return literal(f"\n{text}", "bold #56b4e9", newlines=True)
