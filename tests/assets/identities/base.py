"""Identities between published cells, within rounding, and their rendering in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from app.papers.published_results import published_cells

_EPSILON = 1e-9


@dataclass(frozen=True)
class Check:
    """One printed figure and the one that follows from other cells.

    ``slack`` is how far they may lie apart because the cells are rounded (or resampled), ``half`` half of the printed
    figure's last digit. ``scale`` and ``digits`` are how the paper prints it.
    """

    where: str
    printed: float
    computed: float
    slack: float
    half: float = 0.0
    scale: int = 1
    digits: int = 3

    @property
    def holds(self) -> bool:
        return abs(self.printed - self.computed) <= self.slack + _EPSILON

    @property
    def exact(self) -> bool:
        return abs(self.printed - self.computed) <= self.half + _EPSILON

    def row(self) -> str:
        printed = f"{self.scale * self.printed:.{self.digits}f}"
        more = self.digits + (self.digits > 0)  # a digit more than is printed
        return f"| {self.where} | {printed} | {self.scale * self.computed:.{more}f} |"


@dataclass(frozen=True)
class Identity:
    """Checks of one kind. Those that fail are listed one by one unless ``listed`` is False."""

    of: str
    says: str
    checks: Sequence[Check]
    listed: bool = True

    def row(self) -> str:
        holds, exact = sum(c.holds for c in self.checks), sum(c.exact for c in self.checks)
        return f"| {self.of} | {self.says} | {len(self.checks)} | {holds} | {exact} |"


@dataclass(frozen=True)
class Claim:
    """A statement of the text about its tables, with the verdict of the cells and what they show instead."""

    text: str
    holds: bool
    instead: str = ""

    def row(self) -> str:
        assert self.instead, self.text
        return f"| {self.text} | {self.instead} |"


@dataclass(frozen=True)
class Results:
    """A paper's cells. ``half`` is half of a figure's last printed digit; ``scale`` and ``digits`` are how it prints them."""

    name: str
    half: float
    scale: int = 1
    digits: int = 3

    @cached_property
    def cells(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        return {(c["table"], c["row"], c["column"]): c for c in published_cells(self.name)}

    def __call__(self, table: int | str, row: str, column: str) -> float:
        value = self.cells[_table(table), row, column]["value"]
        assert not isinstance(value, str)
        return float(value)

    def has(self, table: int | str, row: str, column: str) -> bool:
        return (_table(table), row, column) in self.cells

    def sd(self, table: int | str, row: str, column: str) -> float:
        return float(self.cells[_table(table), row, column].get("sd", 0.0))

    def rows(self, table: int | str) -> list[str]:
        return list(dict.fromkeys(row for of, row, _ in self.cells if of == _table(table)))

    def columns(self, table: int | str, row: str | None = None) -> list[str]:
        columns = (c for of, r, c in self.cells if of == _table(table) and row in (None, r))
        return list(dict.fromkeys(columns))

    def check(
        self, table: int | str, row: str, column: str, computed: float, rounded: float = 1, more: float = 0
    ) -> Check:
        """A cell beside what follows from other cells, of which ``rounded`` is the sum of the weights' sizes.

        ``more`` is room beside that of rounding.
        """
        where = f"{_table(table)}, {row}, {column}"
        printed = self(table, row, column)
        return Check(where, printed, computed, (1 + rounded) * self.half + more, self.half, self.scale, self.digits)

    def total(self, where: str, printed: float, computed: float, rounded: float = 1, more: float = 0) -> Check:
        """A figure that is no cell (a whole of 1, or one in the text) beside what follows from cells."""
        return Check(where, printed, computed, rounded * self.half + more, self.half, self.scale, self.digits)


def count(where: str, printed: float, computed: float, slack: float = 0) -> Check:
    """A check of counts."""
    return Check(where, printed, computed, slack, 0, 1, 0)


def _table(table: int | str) -> str:
    return f"Table {table}" if isinstance(table, int) else table


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def rendered(identities: Sequence[Identity], claims: Sequence[Claim]) -> str:
    """A paper's identities and claims in Markdown."""
    checks = [check for identity in identities for check in identity.checks]
    failing = [check for identity in identities if identity.listed for check in identity.checks if not check.holds]
    holding = sum(check.holds for check in checks)
    lines = [
        f"{len(checks)} values follow from others by {len(identities)} identities; {holding} agree within rounding.",
        "",
        "| table | identity | values | agree | to the last digit |",
        "|---|---|---|---|---|",
        *(identity.row() for identity in identities),
    ]
    if failing:
        lines += ["", "Those that disagree:", "", "| value | printed | from the cells |", "|---|---|---|"]
        lines += [check.row() for check in failing]
    wrong = [claim for claim in claims if not claim.holds]
    lines += ["", f"Of {len(claims)} statements of the text about its tables, {len(claims) - len(wrong)} hold."]
    if wrong:
        lines += ["These do not:", "", "| the text | the cells |", "|---|---|", *(claim.row() for claim in wrong)]
    return "\n".join(lines) + "\n"
