"""A table whose rows are selected with space or Enter, singly or in any number."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar, NamedTuple

from textual.message import Message

from app.tui.key_commands import bindings
from app.tui.theme import DIM
from app.tui.widgets.table_columns import Cell, Column, Row, fit_to_contents
from app.tui.widgets.virtual_table import VirtualTable


class ChoiceOption(NamedTuple):
    """A row that can be selected: its key and its cells.

    The rows of a ``group`` can be selected together. A row that is not ``allowed`` is dim and cannot be selected. ``detail``
    is its full description, for a line of its own.
    """

    key: Hashable
    cells: Row
    group: str = ""
    allowed: bool = True
    detail: str = ""


class ChoiceTable(VirtualTable):
    """A table of options; with ``single`` at most one is selected."""

    name_ = "choice"
    BINDINGS: ClassVar = bindings("choice")

    class Changed(Message):
        """The user changed the selection."""

        def __init__(self, table: ChoiceTable) -> None:
            self.table = table
            super().__init__()

        @property
        def control(self) -> ChoiceTable:
            return self.table

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        single: bool = False,
        header: bool = True,
        empty: str = "nothing here",
        id: str | None = None,
    ) -> None:
        super().__init__((Column("", 3), *columns), header=header, empty=empty, id=id)
        self.single = single
        self.options: tuple[ChoiceOption, ...] = ()
        self._chosen: set[Hashable] = set()

    @property
    def chosen(self) -> list[Hashable]:
        """The selected keys, in the order of the rows."""
        return [option.key for option in self.options if option.key in self._chosen]

    def choose(self, keys: Iterable[Hashable]) -> None:
        """Select these keys and no others."""
        self._chosen = set(keys)
        self.offer(self.options)

    def offer(self, options: Sequence[ChoiceOption], *, choose: Iterable[Hashable] | None = None) -> None:
        """Show these rows with ``choose`` selected; None keeps the selection."""
        self.options = tuple(options)
        if choose is not None:
            self._chosen = set(choose)
        columns = fit_to_contents(self.columns, self._rows(0, len(self.options)))
        self.show(len(self.options), self._rows, keys=[option.key for option in self.options], columns=columns)

    def _rows(self, first: int, count: int) -> list[Row]:
        return [self._row_of(option) for option in self.options[first : first + count]]

    def _row_of(self, option: ChoiceOption) -> Row:
        chosen = option.key in self._chosen
        mark = ("(•)" if chosen else "( )") if self.single else ("[x]" if chosen else "[ ]")
        return [[(mark, "bold" if chosen else DIM)], *(_dimmed(cell, option.allowed) for cell in option.cells)]

    @property
    def option(self) -> ChoiceOption | None:
        """The option under the cursor; None if the table is empty."""
        return self.options[self.cursor] if self.cursor < len(self.options) else None

    def action_tick(self) -> None:
        option = self.option
        if option is None or not (option.allowed or option.key in self._chosen):
            self.app.bell()
            return
        self._chosen = {option.key} if self.single else self._chosen ^ {option.key}
        self._changed()

    def action_select(self) -> None:
        self.action_tick()

    def action_tick_group(self) -> None:
        """Select all of the row's group; if any of it is selected, deselect all."""
        option = self.option
        if option is None or self.single:
            return
        group = {other.key for other in self.options if other.group == option.group and other.allowed}
        self._chosen = self._chosen - group if self._chosen & group else self._chosen | group
        self._changed()

    def _changed(self) -> None:
        self.offer(self.options)
        self.post_message(self.Changed(self))


def _dimmed(cell: Cell, allowed: bool) -> Cell:
    return cell if allowed or not isinstance(cell, str) else [(cell, DIM)]
