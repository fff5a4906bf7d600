"""Side-by-side view of a comparison: a row for each metric, the runs as columns."""

from __future__ import annotations

from app.compare.comparison_tables import Comparison
from benchmarks.vocabulary import Cell, Table


def side_by_side_table(comparison: Comparison) -> Table:
    """Return the tables ``values`` and ``differences`` in one: the baseline's value, then each run's value, difference and p.

    Values are over all the answers of a run that count; differences over those that count in both, p corrected by Holm's method.
    Rows on abstention follow; their values, too, are over the answers that count in both.
    """
    tables = {table.name: table for table in comparison.tables}
    values = tables["values"]
    values_of_run = dict(values.rows)
    differences = [cells for _, cells in tables["differences"].rows] if comparison.pairs else []
    columns, metrics = [comparison.views.runs[0].label], len(values.columns)
    for pair in comparison.pairs:
        columns += [pair.second.label, "difference", "p (Holm)"]
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for i, metric in enumerate(values.columns):
        cells: list[Cell] = [values_of_run[columns[0]][i]]
        for number, pair in enumerate(comparison.pairs):
            difference = differences[number * metrics + i]
            cells += [values_of_run[pair.second.label][i], difference[2], difference[7]]
        rows.append((metric, tuple(cells)))
    if abstention := tables.get("abstention-differences"):
        by_metric: dict[str, list[tuple[Cell, ...]]] = {}
        for label, entry in abstention.rows:
            by_metric.setdefault(label.rpartition(" / ")[2], []).append(entry)
        for metric, entries in by_metric.items():
            beside = [cell for entry in entries for cell in (entry[1], entry[2], entry[7])]
            rows.append((metric, (entries[0][0], *beside)))
    notes = (*values.notes, *(tables["differences"].notes if comparison.pairs else ()))
    return Table("beside", "Side by side", tuple(columns), tuple(rows), notes)
