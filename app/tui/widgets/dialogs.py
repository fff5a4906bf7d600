"""Dialogs over a screen: a question, an error that can be copied, a text to type. All by keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from app.tui.safe import literal

_BOX = """
    {name} {{ align: center middle; background: black 60%; }}
    {name} > Vertical {{
        width: 72; max-width: 95%; height: auto; max-height: 90%; padding: 1 2; background: $panel; border: solid {colour};
    }}
    {name} .heading {{ text-style: bold; margin-bottom: 1; }}
    {name} VerticalScroll {{ height: auto; max-height: 12; }}
    {name} Horizontal {{ height: auto; margin-top: 1; }}
    {name} Button {{ margin-right: 2; min-width: 12; }}
    {name} .hint {{ color: #909090; margin-top: 1; }}
"""


class Confirm(ModalScreen[bool]):
    """A question; True for yes. ``heading`` and ``yes`` are ours, ``text`` may hold anything. Focus is on No."""

    DEFAULT_CSS = _BOX.format(name="Confirm", colour="$accent")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
        Binding("left,right", "app.focus_next", "Other", show=False),
    ]

    def __init__(self, heading: str, text: str, *, yes: str = "Yes", no: str = "No") -> None:
        super().__init__()
        self._heading, self._text, self._yes, self._no = heading, text, yes, no

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(self._heading), classes="heading")
            yield Static(literal(self._text, newlines=True))
            with Horizontal():
                yield Button(Content(f"{self._no} (n)"), id="no")
                yield Button(Content(f"{self._yes} (y)"), id="yes", variant="warning")

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class LeaveDialog(ModalScreen[str | None]):
    """Leaving while runs go on: "leave" (they go on), "stop" (they stop at the next answer), None to stay. Focus is on Stay."""

    DEFAULT_CSS = _BOX.format(name="LeaveDialog", colour="$accent")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n,escape", "answer('')", "Stay"),
        Binding("y,l", "answer('leave')", "Leave"),
        Binding("x", "answer('stop')", "Stop them"),
        Binding("left,up", "app.focus_previous", "Other", show=False),
        Binding("right,down", "app.focus_next", "Other", show=False),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content("Leave?"), classes="heading")
            yield Static(literal(self._text, newlines=True))
            with Horizontal():
                yield Button(Content("Stay (n)"), id="stay")
                yield Button(Content("Leave (y)"), id="leave", variant="primary")
                yield Button(Content("Stop them (x)"), id="stop", variant="warning")

    def on_mount(self) -> None:
        self.query_one("#stay").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.action_answer("" if event.button.id == "stay" else str(event.button.id))

    def action_answer(self, answer: str) -> None:
        self.dismiss(answer or None)


class ErrorDialog(ModalScreen[None]):
    """What went wrong, as it is; y copies it."""

    DEFAULT_CSS = _BOX.format(name="ErrorDialog", colour="$error")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "Close"),
        Binding("y", "copy", "Copy"),
    ]

    def __init__(self, message: str, *, heading: str = "This did not work") -> None:
        super().__init__()
        self.message, self._heading = message, heading

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(f"! {self._heading}"), classes="heading")
            with VerticalScroll():
                yield Static(literal(self.message, newlines=True))
            yield Static(Content("Esc closes, y copies"), classes="hint")

    def action_copy(self) -> None:
        copy = getattr(self.app, "copy", None)
        if copy is not None:
            copy(self.message)


class AskText(ModalScreen[str | None]):
    """A line of text; None when it is left. ``check`` says in a sentence what is wrong with it, or nothing."""

    DEFAULT_CSS = _BOX.format(name="AskText", colour="$primary")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]

    def __init__(
        self, heading: str, text: str = "", *, value: str = "", check: Callable[[str], str] = lambda text: ""
    ) -> None:
        super().__init__()
        self._heading, self._text, self._value, self._check = heading, text, value, check

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(self._heading), classes="heading")
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
