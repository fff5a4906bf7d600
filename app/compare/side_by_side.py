"""A comparison side by side: a row a figure, the runs as columns, as people read it on a screen."""

from __future__ import annotations

from app.compare.tables import Comparison
from benchmarks.base import Cell, Table


def beside(found: Comparison) -> Table:
    """The tables ``values`` and ``differences`` in one: the baseline's value, then of each run its value, difference and p.

    Values are over all that a run has labelled; differences over the answers that both have, p corrected by Holm's method.
    """
    tables = {table.name: table for table in found.tables}
    values = tables["values"]
    of_run = dict(values.rows)
    differences = [cells for _, cells in tables["differences"].rows] if found.pairs else []
    columns, each = [found.sides.sides[0].label], len(values.columns)
    for pair in found.pairs:
        columns += [pair.second.label, "difference", "p (Holm)"]
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for i, figure in enumerate(values.columns):
        cells: list[Cell] = [of_run[columns[0]][i]]
        for number, pair in enumerate(found.pairs):
            compared = differences[number * each + i]
            cells += [of_run[pair.second.label][i], compared[2], compared[7]]
        rows.append((figure, tuple(cells)))
    notes = (*values.notes, *(tables["differences"].notes if found.pairs else ()))
    return Table("beside", "Side by side", tuple(columns), tuple(rows), notes)
