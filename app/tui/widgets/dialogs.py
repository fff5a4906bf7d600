"""Dialogs over a screen: a question, an error that can be copied, a text to type. All by keys.

Every dialog is a :class:`Dialog`: it takes no key, click or paste from before its text was on the terminal.
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
from app.tui.widgets.painted import Painted

T = TypeVar("T")


class Dialog(ModalScreen[T]):
    """A box over a screen. A subclass yields :attr:`painted` among its widgets, as the text that must have been read."""

    DEFAULT_CSS = """
    Dialog { align: center middle; background: black 60%; }
    Dialog > Vertical {
        width: 72; max-width: 95%; height: auto; max-height: 90%; padding: 1 2; background: $panel; border: solid $primary;
    }
    Dialog .heading { text-style: bold; margin-bottom: 1; }
    Dialog VerticalScroll { height: auto; max-height: 12; }
    Dialog Horizontal { height: auto; margin-top: 1; }
    Dialog Button { margin-right: 2; min-width: 12; }
    Dialog .hint { color: #909090; margin-top: 1; }
    """

    def __init__(self, heading: Content) -> None:
        super().__init__()
        self.painted = Painted(heading, classes="heading")
        self._covered = False

    @property
    def displayed(self) -> bool:
        """Return whether the dialog was on the terminal before the key that is being handled."""
        return self.painted.displayed

    def on_screen_suspend(self) -> None:
        self._covered = True

    def on_screen_resume(self) -> None:
        if self._covered:
            self._covered = False
            self.painted.unpaint()


class DialogAnswer(NamedTuple, Generic[T]):
    """An answer to a question: its value, the key that gives it, and its word; ours."""

    value: T
    key: str
    word: str
    variant: Literal["default", "primary", "warning"] = "default"


class Question(Dialog[T]):
    """A question; the value of the answer that is given. The first answer does no harm: the focus is on it, and Esc gives it.

    ``heading`` and the answers are ours, ``text`` may hold anything.
    """

    DEFAULT_CSS = "Question > Vertical { border: solid $accent; }"
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
    """A question; True for yes."""

    def __init__(self, heading: str, text: str, *, yes: str = "Yes", no: str = "No") -> None:
        super().__init__(heading, text, [DialogAnswer(False, "n", no), DialogAnswer(True, "y", yes, "warning")])


class LeaveDialog(Question[str]):
    """Leaving while runs go on: "leave" (they go on), "stop" (they stop at the next answer), "" to stay."""

    def __init__(self, text: str) -> None:
        answers = [
            DialogAnswer("", "n", "Stay"),
            DialogAnswer("leave", "y", "Leave", "primary"),
            DialogAnswer("stop", "x", "Stop them", "warning"),
        ]
        super().__init__("Leave?", text, answers)


class StopDialog(Question[str]):
    """Stopping a run of a batch: "run" (the batch begins its next one), "batch" (nothing after it begins), "" for neither."""

    def __init__(self, text: str) -> None:
        answers = [
            DialogAnswer("", "n", "Neither"),
            DialogAnswer("run", "y", "This run", "warning"),
            DialogAnswer("batch", "b", "The whole batch", "warning"),
        ]
        super().__init__("Stop this run, or its batch?", text, answers)


class ErrorDialog(Dialog[None]):
    """What went wrong, as it is; y copies it."""

    DEFAULT_CSS = "ErrorDialog > Vertical { border: solid $error; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "Close"),
        Binding("y", "copy", "Copy"),
    ]

    def __init__(self, message: str, *, heading: str = "This did not work") -> None:
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
    """A line of text; None when it is left. ``check`` says in a sentence what is wrong with it, or nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]

    def __init__(
        self, heading: str, text: str = "", *, value: str = "", check: Callable[[str], str] = lambda text: ""
    ) -> None:
        super().__init__(Content(heading))
        self._text, self._value, self._check = text, value, check

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.painted
            if self._text:
                yield Static(literal(self._text, newlines=True))
            yield Input(self._value, id="typed")
            yield Static(Content("Enter takes it, Esc leaves"), classes="hint", id="hint")

    def on_input_changed(self, event: Input.Changed) -> None:
        wrong = self._check(event.value)
        self.query_one("#hint", Static).update(literal(wrong) if wrong else Content("Enter takes it, Esc leaves"))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if not self._check(event.value):
            self.dismiss(event.value)

    def action_leave(self) -> None:
        self.dismiss(None)
