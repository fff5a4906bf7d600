"""A form for the keys of a table's columns, with the first rows as they would be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from app.tui.hostile_text import literal, sanitize
from app.tui.theme import RIGHT, WRONG
from app.tui.widgets.form_field import Field
from benchmarks.errors import UnknownKeysError
from benchmarks.rows.row_checks import ReadRow
from benchmarks.rows.row_columns import written_mapping

_COLUMNS = {
    "question": "question",
    "image": "image",
    "answer": "right answer",
    "passage": "passage",
    "text_answer": "passage states",
    "image_answer": "image states",
    "conflict": "wrong value",
    "trust": "should win",
    "document": "document",
    "group": "group",
}
"""The columns that are mapped here, with their labels; `--map` maps the others, too."""
_LONGEST_KEY = 200


class MappingForm(VerticalScroll, can_focus=False):
    """One field for the key of each column, and the first rows below; Tab, Down and Up move between the fields."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.focus_next", "Next", show=False),
        Binding("up", "app.focus_previous", "Previous", show=False),
    ]

    class Changed(Message):
        """The mapping was changed."""

    def compose(self) -> ComposeResult:
        yield Static(id="mapping-problem")
        for column, label in _COLUMNS.items():
            yield Field(f"map-{column}", label, long=True)
        yield Static(id="mapping-rows")

    @property
    def mapping(self) -> str:
        """The text of ``--map``."""
        fields = {column: self._field(column).value.strip() for column in _COLUMNS}
        return written_mapping({column: key for column, key in fields.items() if key})

    def fill(self, problem: UnknownKeysError) -> None:
        """Show what is wrong and the guess; a key that cannot be displayed as it is, is left to the user."""
        self.query_one("#mapping-problem", Static).update(literal(problem.reason, WRONG))
        for column in _COLUMNS:
            key = problem.guess.get(column, "")
            self._field(column).value = key if sanitize(key, limit=_LONGEST_KEY) == key else ""
            self._field(column).example(problem.known.get(column, ""))

    def focus_first(self) -> None:
        """Move to the first column."""
        self._field("question").query_one(Input).focus()

    def show_rows(self, rows: Sequence[ReadRow] | str) -> None:
        """Show rows as they would be read, or why none is."""
        if isinstance(rows, str):
            lines = [literal(f"✗ {rows}", WRONG)]
        else:
            marks = [("✓", RIGHT) if row.usable else ("✗", WRONG) for row in rows]
            lines = [
                literal(mark, style) + literal(f" {row.where}  {row.text}", limit=300)
                for (mark, style), row in zip(marks, rows, strict=True)
            ]
        self.query_one("#mapping-rows", Static).update(Content("\n").join([Content("Read with it:"), *lines]))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Report the change as one of the form."""
        event.stop()
        self.post_message(self.Changed())

    def _field(self, column: str) -> Field:
        return self.query_one(f"#field-map-{column}", Field)
