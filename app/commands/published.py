"""``rashomon published``: the papers' tables."""

from __future__ import annotations

import json

from app.report.render import print_table, to_json
from app.report.tables import published_cells
from benchmarks.base import Cell, Estimate, Table, benchmark_names, did_you_mean, get_benchmark
from benchmarks.errors import SpecError


def published(name: str, *, table: str | None, as_json: bool) -> None:
    """Print the tables of the paper of the benchmark called ``name``, or the one called ``table``."""
    benchmark = get_benchmark(name)
    cells = published_cells(name)
    if not cells:
        have = ", ".join(each for each in benchmark_names() if published_cells(each))
        raise SpecError(f"the published tables of {name} are not here; there are those of {have}.")
    names = list(dict.fromkeys(cell["table"] for cell in cells))
    if table is not None:
        wanted = [one for one in names if one.casefold() in (table.casefold(), f"table {table}".casefold())]
        if not wanted:
            raise SpecError(f"{name} has no published table {table!r}; {did_you_mean(table, names)}")
        names = wanted
    tables = [_table(one, [cell for cell in cells if cell["table"] == one], benchmark.paper) for one in names]
    if as_json:
        print(json.dumps([to_json(one) for one in tables], indent=2))
        return
    for one in tables:
        print_table(one)


def _table(name: str, cells: list[dict[str, object]], paper: str) -> Table:
    columns = tuple(dict.fromkeys(str(cell["column"]) for cell in cells))
    rows: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        rows.setdefault(str(cell["row"]), {})[str(cell["column"])] = _cell(cell)
    notes = tuple(dict.fromkeys(str(cell["note"]) for cell in cells if cell.get("note")))
    whole = tuple((row, tuple(found.get(column) for column in columns)) for row, found in rows.items())
    return Table(
        name,
        f"{name} of {paper}",
        columns,
        whole,
        notes,
        percent=any("sd" in cell or "percent" in cell for cell in cells),
    )


def _cell(cell: dict[str, object]) -> Cell:
    value, sd = cell["value"], cell.get("sd")
    if not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) and value > 1:  # a count
        return value
    return Estimate(float(value), sd=float(sd) if isinstance(sd, int | float) else None)
