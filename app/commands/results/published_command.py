"""``rashomon published``: the tables of the papers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from app.json_output.json_envelope import print_json
from app.json_output.published_json import PublishedResult
from app.json_output.tables_json import table_json
from app.papers.published_results import published_cells, published_names
from app.report.tables.table_rendering import print_table
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.vocabulary import Cell, Estimate, Table


def published(name: str | None, *, table: str | None, as_json: bool) -> None:
    """Print the tables of a benchmark's paper, or only ``table``. Without a name, list the papers' tables.

    Raises SpecError for an unknown benchmark or table.
    """
    if name is None:
        if table is not None:
            raise SpecError("--table needs a benchmark; name it first.")
        tables = [_contents()]
    elif name not in published_names():
        raise SpecError(f"there are no published results of {name!r}; {did_you_mean(name, published_names())}")
    else:
        cells = published_cells(name)
        names = list(dict.fromkeys(cell["table"] for cell in cells))
        if table is not None:
            matches = [key for key in names if key.casefold() in (table.casefold(), f"table {table}".casefold())]
            if not matches:
                raise SpecError(f"{name} has no published table {table!r}; {did_you_mean(table, names)}")
            names = matches
        tables = [_table(key, [cell for cell in cells if cell["table"] == key]) for key in names]
    if as_json:
        print_json("published", PublishedResult(benchmark=name, tables=tuple(map(table_json, tables))))
        return
    for paper_table in tables:
        print_table(paper_table)


def _contents() -> Table:
    rows = []
    for name in published_names():
        cells = published_cells(name)
        counts = Counter(cell["table"] for cell in cells)
        cells_by_table = ", ".join(f"{table} ({count})" for table, count in counts.items())
        rows.append((name, (cells[0]["paper"], len(cells), cells_by_table)))
    return Table("contents", "Published results", ("paper", "cells", "of them in"), tuple(rows))


def _table(name: str, cells: Sequence[dict[str, Any]]) -> Table:
    columns = tuple(dict.fromkeys(cell["column"] for cell in cells))
    rows: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        rows.setdefault(cell["row"], {})[cell["column"]] = _cell(cell)
    notes = tuple(dict.fromkeys(cell["note"] for cell in cells if "note" in cell))
    values = tuple((row, tuple(by_column.get(column) for column in columns)) for row, by_column in rows.items())
    percent = any("percent" in cell for cell in cells)
    return Table(name, f"{name} of {cells[0]['paper']}", columns, values, notes, percent=percent)


def _cell(cell: dict[str, Any]) -> Cell:
    value: float | str = cell["value"]
    return Estimate(value, n=cell.get("n", 0), sd=cell.get("sd")) if isinstance(value, float) else value
