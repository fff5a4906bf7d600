"""One line of a form: a label, an input, and a hint or an error."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Input, Static

from app.tui.hostile_text import literal


class Field(Horizontal):
    """A labelled input. ``key`` is the spec's key; ``label``, ``hint`` and ``example`` must be ours."""

    def __init__(self, key: str, label: str, hint: str = "", example: str = "", *, long: bool = False) -> None:
        super().__init__(id=f"field-{key}", classes="-long" if long else "")
        self.key = key
        self._label, self._hint, self._example = label, hint, example
        self._written = Content(hint)

    def compose(self) -> ComposeResult:
        yield Static(Content(self._label), classes="label")
        yield Input(placeholder=self._example, compact=True, id=f"input-{self.key}")
        yield Static(Content(self._hint), classes="hint")

    @property
    def value(self) -> str:
        return self.query_one(Input).value

    @value.setter
    def value(self, value: str) -> None:
        self.query_one(Input).value = value

    def example(self, text: str) -> None:
        """Set the placeholder of the empty input."""
        self.query_one(Input).placeholder = text

    def show_problem(self, problem: str = "") -> None:
        """Show a problem; the hint if ``problem`` is empty."""
        self.set_class(bool(problem), "-wrong")
        self._write(literal(f"✗ {problem}") if problem else Content(self._hint))

    def _write(self, content: Content) -> None:
        if content != self._written:  # an update costs a layout
            self._written = content
            self.query_one(".hint", Static).update(content)
