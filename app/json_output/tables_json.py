"""JSON of result tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from benchmarks.vocabulary import Cell, Estimate, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateJson:
    """A value with its 95% interval; ``value`` null is n/a, and ``reason`` says why.

    ``n`` answers are behind it; ``missing`` more would be, had they a label. ``sd`` is the bootstrap standard deviation.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str
    sd: float | None
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: the key of its cells, and its title as displayed."""

    key: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row: its label as displayed, and its cells by the keys of the columns."""

    label: str
    cells: dict[str, EstimateJson | str | int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJson:
    """A result table. ``percent`` says that its fractions are displayed in percent."""

    name: str
    title: str
    percent: bool
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def table_json(table: Table) -> TableJson:
    """Return a table with the keys of its columns."""
    columns = tuple(Column(key=key, title=title) for key, title in zip(keys(table.columns), table.columns, strict=True))
    rows = tuple(
        Row(label=label, cells={column.key: _cell(cell) for column, cell in zip(columns, cells, strict=True)})
        for label, cells in table.rows
    )
    return TableJson(
        name=table.name, title=table.title, percent=table.percent, columns=columns, rows=rows, notes=table.notes
    )


def keys(titles: tuple[str, ...]) -> list[str]:
    """Return a key in snake_case for each title; equal ones are numbered: ``p``, ``p_2``.

    Greek letters and signs that tell metrics apart are spelled: ``ΔAcc`` is ``delta_acc``, ``PD*`` ``pd_star``. A title that was
    reworded keeps its key.
    """
    result: list[str] = []
    for title in titles:
        base = _KEYS.get(title) or snake_case(title)
        key = base = f"column_{base}" if base[0].isdigit() else base
        number = 2
        while key in result:
            key, number = f"{base}_{number}", number + 1
        result.append(key)
    return result


_KEYS = {
    "benchmark accuracy": "accuracy",
    "decision accuracy": "accuracy",
    "only baseline": "lost",
    "only run": "gained",
    "score fell": "lost",
    "score rose": "gained",
    "floor": "best_policy",
    "utility of the floor": "utility_of_the_policy",
}
"""The keys of reworded titles."""
_SPELLED = {
    "Δ": " delta ",
    "κ": " kappa ",
    "α": " alpha ",
    "ρ": " rho ",
    "τ": " tau ",
    "%": " percent ",
    "*": " star ",
    "+": " plus ",
}


def snake_case(text: str) -> str:
    """Return a text as a key of lower-case ASCII letters, digits and underscores."""
    for sign, word in _SPELLED.items():
        text = text.replace(sign, word)
    key = re.sub(r"[^a-z0-9]+", "_", text.casefold()).strip("_")
    return key or "value"


def _cell(cell: Cell) -> EstimateJson | str | int | None:
    return estimate_json(cell) if isinstance(cell, Estimate) else cell


def estimate_json(estimate: Estimate) -> EstimateJson:
    """Return an estimate."""
    return EstimateJson(**{field.name: getattr(estimate, field.name) for field in fields(EstimateJson)})
