"""Field: a line of a form: what it is, what is typed, and what is wrong with it or what it means."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Input, Static

from app.tui.hostile_text import literal


class Field(Horizontal):
    """A labelled input. ``key`` is the spec's key; ``label``, ``hint`` and ``example`` are ours."""

    DEFAULT_CSS = """
    Field { height: 1; }
    Field > .label { width: 17; color: #b0b0b0; }
    Field > Input { width: 20; background: $panel; }
    Field.-long > Input { width: 1fr; }
    Field > .hint { width: 1fr; padding-left: 1; color: #909090; height: 1; }
    Field.-long > .hint { width: auto; max-width: 60%; padding-left: 0; }
    Field.-wrong > .hint { color: $error; }
    Field.-wrong > Input { text-style: underline; }
    """

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
        """Show in the empty input what stands where nothing is typed."""
        self.query_one(Input).placeholder = text

    def wrong(self, sentence: str = "") -> None:
        """Show what is wrong, or nothing."""
        self.set_class(bool(sentence), "-wrong")
        self._write(literal(f"✗ {sentence}") if sentence else Content(self._hint))

    def tell(self, sentence: str) -> None:
        """Show something in the place of the hint until the next :meth:`wrong`."""
        self._write(literal(sentence))

    def _write(self, content: Content) -> None:
        if content != self._written:  # writing costs a layout
            self._written = content
            self.query_one(".hint", Static).update(content)
