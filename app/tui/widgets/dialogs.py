"""Dialogs over a screen: a question, an error that can be copied, a line of text.

Every dialog is a :class:`Dialog`: it ignores keys, clicks and pastes from before its text was on the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, Literal, NamedTuple, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from app.tui.hostile_text import literal
from app.tui.widgets.displayed_text import DisplayedText

T = TypeVar("T")
_HINT = "Enter confirms, Esc cancels"


class Dialog(ModalScreen[T]):
    """A box over a screen. A subclass yields :attr:`painted`, the text that must be on display before a key counts.

    In a small terminal it has no frame; where even the heading has no room, keys count once the rest is on display.
    """

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (40, "-broad")]  # noqa: RUF012 - Textual declares them so
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-high")]  # noqa: RUF012

    def __init__(self, heading: Content) -> None:
        super().__init__()
        self.painted = DisplayedText(heading, classes="heading", optional=True)
        self._covered = False

    @property
    def displayed(self) -> bool:
        """True if the dialog was on the terminal before the key that is being handled."""
        return self.painted.displayed

    def on_resize(self) -> None:
        self.painted.skip_if_hidden()

    def on_screen_suspend(self) -> None:
        self._covered = True

    def on_screen_resume(self) -> None:
        if self._covered:
            self._covered = False
            self.painted.mark_undisplayed()


class DialogAnswer(NamedTuple, Generic[T]):
    """An answer to a question: its value, its key, and the text of its button, which must be ours."""

    value: T
    key: str
    word: str
    variant: Literal["default", "primary", "warning"] = "default"


class Question(Dialog[T]):
    """A question; returns the value of the chosen answer.

    The first answer must be harmless: it has the focus, and Esc chooses it. ``heading`` and the answers must be ours;
    ``text`` may be hostile.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,up", "app.focus_previous", "Other", show=False),
        Binding("right,down", "app.focus_next", "Other", show=False),
    ]

    def __init__(self, heading: str, text: str, answers: Sequence[DialogAnswer[T]]) -> None:
        super().__init__(Content(heading))
        self._text, self._answers = text, answers

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.painted
            with VerticalScroll(can_focus=False):
                yield Static(literal(self._text, newlines=True))
            with Horizontal():
                for number, answer in enumerate(self._answers):
                    word = Content(f"{answer.word} ({answer.key})")
                    yield Button(word, id=f"answer-{number}", variant=answer.variant)

    def on_mount(self) -> None:
        self.set_focus(self.query(Button).first())

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(self._answers[int(str(event.button.id).rpartition("-")[2])].value)

    def on_key(self, event: events.Key) -> None:
        keys = {answer.key: answer.value for answer in self._answers} | {"escape": self._answers[0].value}
        if event.key in keys:
            event.stop()
            self.dismiss(keys[event.key])


class Confirm(Question[bool]):
    """A yes-or-no question; returns True for yes."""

    def __init__(self, heading: str, text: str, *, yes: str = "Yes", no: str = "No") -> None:
        super().__init__(heading, text, [DialogAnswer(False, "n", no), DialogAnswer(True, "y", yes, "warning")])


class LeaveDialog(Question[str]):
    """The question when quitting with active runs: "leave" (they keep running), "stop" (they stop), "" (stay).

    ``names`` are those of the runs; there are none if a started process has not reached its run yet.
    """

    def __init__(self, names: Sequence[str]) -> None:
        active = "A process that you started is still running."
        if names:
            active = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} still running."
        text = (
            f"{active}\n\nQuit: everything keeps running; `rashomon` shows it again.\n"
            "Stop: runs stop after the next answer and batches start no other run. All answers are kept; R resumes a run."
        )
        answers = [
            DialogAnswer("", "n", "Stay"),
            DialogAnswer("leave", "y", "Quit", "primary"),
            DialogAnswer("stop", "x", "Stop them", "warning"),
        ]
        super().__init__("Quit?", text, answers)


class StopDialog(Question[str]):
    """The question when stopping a run of a batch: "run" (the batch starts its next run), "batch", or "" for neither."""

    def __init__(self, text: str) -> None:
        answers = [
            DialogAnswer("", "n", "Neither"),
            DialogAnswer("run", "y", "This run", "warning"),
            DialogAnswer("batch", "b", "The whole batch", "warning"),
        ]
        super().__init__("Stop this run, or its batch?", text, answers)


class ErrorDialog(Dialog[None]):
    """An error message in full, which y copies."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "Close"),
        Binding("y", "copy", "Copy"),
    ]

    def __init__(self, message: str, *, heading: str = "Error") -> None:
        super().__init__(Content(f"! {heading}"))
        self.message = message

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.painted
            with VerticalScroll():
                yield Static(literal(self.message, newlines=True))
            yield Static(Content("Esc closes, y copies"), classes="hint")

    def action_copy(self) -> None:
        copy = getattr(self.app, "copy", None)
        if copy is not None:
            copy(self.message)


class TextDialog(Dialog[str | None]):
    """A line of text; None if the dialog is cancelled. ``check`` returns one sentence if a text is invalid, else ""."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel")]

    def __init__(
        self, heading: str, text: str = "", *, value: str = "", check: Callable[[str], str] = lambda text: ""
    ) -> None:
        super().__init__(Content(heading))
        self._text, self._value, self._check = text, value, check

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.painted
            if self._text:
                yield Static(literal(self._text, newlines=True), id="text")
            yield Input(self._value, id="typed")
            yield Static(Content(_HINT), classes="hint", id="hint")

    def on_input_changed(self, event: Input.Changed) -> None:
        problem = self._check(event.value)
        self.query_one("#hint", Static).update(literal(problem) if problem else Content(_HINT))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if not self._check(event.value):
            self.dismiss(event.value)

    def action_leave(self) -> None:
        self.dismiss(None)
