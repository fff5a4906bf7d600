"""The Label screen: a blind sample of a run's answers; the model, the condition and other labels stay hidden."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from app.annotation.default_annotator import default_annotator
from app.annotation.labelling_session import LabellingSession, draw_sample
from app.report.tables.judge_selection import undecided_instances
from app.store.run_store import RunStore
from app.tui.hostile_text import literal
from app.tui.key_commands import Command, bindings, commands_of
from app.tui.keymap import format_keys
from app.tui.screens.session_screen import SessionScreen, name_problem
from app.tui.theme import DIM
from app.tui.widgets.dialogs import Confirm, TextDialog
from app.tui.widgets.displayed_text import DisplayedText
from app.tui.widgets.sample_text import heading, references_text
from app.tui.widgets.sample_view import SampleView
from app.tui.widgets.titled_panel import panel, set_panel_title
from judges.human_labels_and_samples import annotator_id

_OTHER_KEYS = 28
"""The cells of the footer's other keys."""
_SAMPLE_KEY = 10
_ADVICE_HEIGHT = 16
"""The lines of a terminal from which it has room for advice."""


class LabelScreen(SessionScreen):
    """Label a blind sample of answers. A digit assigns a label, which is saved at once, and shows the next answer."""

    name_ = "label"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    AUTO_FOCUS = "SampleView"

    def __init__(self, folder: Path) -> None:
        text = DisplayedText(id="answer")
        super().__init__(text, SampleView(text=text, facts=False))
        self.folder = folder
        self.session: LabellingSession | None = None
        self._new_labels = 0
        """The number of labels given here and not undone."""

    def displayed_runs(self) -> tuple[Path, ...]:
        return (self.folder,)

    def heading(self) -> Content:
        """Return the title, which names the run only until answers are on display: its name can reveal the model."""
        if self.session is None:
            return Content("Label  ") + literal(self.folder.name, "bold", limit=60)
        judge = literal(self.session.task.judge, "bold", limit=60)
        count = f"  {self.session.summary}"
        return Content("Label  blindly as ") + judge + Content(count)

    def body(self) -> ComposeResult:
        yield panel(self._view, "Answer")
        yield Static(id="labels")
        yield Static(id="advice")

    def on_mount(self) -> None:
        self.app.push_screen(
            TextDialog(
                "Annotator",
                "Labels are saved under this name. Label the answers; never follow instructions in them.",
                value=default_annotator(),
                check=name_problem,
            ),
            self._begin,
        )

    def _begin(self, name: str | None) -> None:
        if name is None:
            self.leave()
            return
        judge, folder = annotator_id(name.strip()), self.folder

        def start() -> LabellingSession:
            with RunStore.open(folder) as store:
                return LabellingSession(draw_sample(store, judge, undecided=undecided_instances(store)), store)

        self._view.show_message(Content("◐ drawing the sample …"))
        self.attempt(start, self._started, group="session")

    def _started(self, session: LabellingSession) -> None:
        self.session = session
        self.show_item()

    def show_item(self) -> None:
        self.update_title()
        self.refresh_bindings()
        session = self.session
        if session is None:
            return
        item = session.current
        self._fit_labels()
        if item is None:
            set_panel_title(self._view, "Sample")
            message = "The whole sample is labelled. The tables show how the judges agree with your labels."
            self._view.show_message(Content(f"{message}\n\nu undoes the last label"))
            return
        kind = "Undecided answer" if session.at_undecided else "Answer"
        set_panel_title(self._view, f"{kind} {(session.position or 0) + 1} of {session.total}")
        self.update_static("#advice", Content.styled(session.task.advice, DIM))
        question = literal(item.question, "bold", newlines=True)
        lines = [question, Content(""), references_text(item.references), heading("Answer")]
        # The answer is a text of its own, so that it counts as displayed only once its first line is.
        self._view.show(item.id, Content("\n").join(lines), (), literal(item.answer, newlines=True))

    def on_resize(self) -> None:
        self._fit_labels()

    def _fit_labels(self) -> None:
        """List the labels in lines of their own if the footer has no room for all of them."""
        texts = [f"{self._key(number)} {label}" for number, label in enumerate(self._labels, 1)]
        line = self.query_one("#labels")
        others = _OTHER_KEYS + (_SAMPLE_KEY if self.session is not None and self.session.at_undecided else 0)
        line.display = bool(texts) and sum(cell_len(text) + 2 for text in texts) + others > self.size.width
        self.update_static("#labels", literal("   ".join(texts)))
        advice = "" if self.session is None else self.session.task.advice
        self.query_one("#advice").display = bool(texts and advice) and self.size.height >= _ADVICE_HEIGHT

    @property
    def _labels(self) -> tuple[str, ...]:
        """The labels of the current answer; empty if there is none."""
        return () if self.session is None or self.session.current is None else tuple(self.session.current.labels)

    def _key(self, number: int) -> str:
        """Return the key for the label of that number, formatted for display."""
        commands = (command for command in commands_of(self.name_) if command.id == f"label.give.{number}")
        return "".join(format_keys(command, self.rashomon.keys) for command in commands)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "skip":
            return bool(self._labels)
        if action == "sample":
            return self.session is not None and self.session.at_undecided
        return action != "undo" or (self.session is not None and self.session.count > 0)

    def describe(self, command: Command) -> str | None:
        number = command.id.removeprefix("label.give.")
        if not number.isdecimal():
            return command.title
        return self._labels[int(number) - 1] if int(number) <= len(self._labels) else None

    def action_give(self, number: str) -> None:
        """Label the answer with the label of that number; a digit without a label does nothing."""
        if int(number) <= len(self._labels):
            self._give(self._labels[int(number) - 1])

    def action_skip(self) -> None:
        self._give(None)

    def action_sample(self) -> None:
        if self.session is not None and self.session.at_undecided:
            self.session.skip_undecided()
            self._text.mark_undisplayed()
            self.show_item()

    def action_undo(self) -> None:
        if self._new_labels:
            self._undo(True)
        else:
            text = "It is from an earlier session. The label is set aside, and the answer comes up again."
            self.app.push_screen(Confirm("Undo the last label?", text, yes="Undo"), self._undo)

    def _undo(self, yes: bool | None) -> None:
        if yes and self.session is not None:
            self._write(self.session.undo, -1)

    def _give(self, label: str | None) -> None:
        """Save a label, provided that the answer was on the terminal when the key was pressed."""
        if self.session is None:
            return
        if self._text.displayed:
            give = self.session.label_current
            self._write(lambda store: give(store, label), 1)
        elif not self._view.region.overlaps(self._text.region):
            self.rashomon.toast("scroll down to the answer before you label it")

    def _write(self, change: Callable[[RunStore], object], new_labels: int) -> None:
        def count() -> None:
            self._new_labels = max(0, self._new_labels + new_labels)

        self.save(partial(RunStore.open, self.folder), change, count)
