"""``rashomon published``: the papers' tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from app.report.published import published_cells, published_names
from app.report.render import print_table, to_json
from benchmarks.base import Cell, Estimate, Table, did_you_mean
from benchmarks.errors import SpecError


def published(name: str | None, *, table: str | None, as_json: bool) -> None:
    """Print the tables of the paper of the benchmark called ``name``, or the one called ``table``; without a name, which
    papers' tables there are."""
    if name is None:
        if table is not None:
            raise SpecError("a table is one of a paper's; name its benchmark before it.")
        tables = [_contents()]
    elif name not in published_names():
        raise SpecError(f"there are no published results of {name!r}; {did_you_mean(name, published_names())}")
    else:
        cells = published_cells(name)
        names = list(dict.fromkeys(cell["table"] for cell in cells))
        if table is not None:
            wanted = [one for one in names if one.casefold() in (table.casefold(), f"table {table}".casefold())]
            if not wanted:
                raise SpecError(f"{name} has no published table {table!r}; {did_you_mean(table, names)}")
            names = wanted
        tables = [_table(one, [cell for cell in cells if cell["table"] == one]) for one in names]
    if as_json:
        print(json.dumps([to_json(one) for one in tables], indent=2))
        return
    for one in tables:
        print_table(one)


def _contents() -> Table:
    rows = []
    for name in published_names():
        cells = published_cells(name)
        counts = Counter(cell["table"] for cell in cells)
        of = ", ".join(f"{table} ({count})" for table, count in counts.items())
        rows.append((name, (cells[0]["paper"], len(cells), of)))
    return Table("contents", "Published results", ("paper", "cells", "of them in"), tuple(rows))


def _table(name: str, cells: Sequence[dict[str, Any]]) -> Table:
    columns = tuple(dict.fromkeys(cell["column"] for cell in cells))
    rows: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        rows.setdefault(cell["row"], {})[cell["column"]] = _cell(cell)
    notes = tuple(dict.fromkeys(cell["note"] for cell in cells if "note" in cell))
    whole = tuple((row, tuple(found.get(column) for column in columns)) for row, found in rows.items())
    percent = any("percent" in cell for cell in cells)
    return Table(name, f"{name} of {cells[0]['paper']}", columns, whole, notes, percent=percent)


def _cell(cell: dict[str, Any]) -> Cell:
    value: float | str = cell["value"]
    return Estimate(value, n=cell.get("n", 0), sd=cell.get("sd")) if isinstance(value, float) else value
