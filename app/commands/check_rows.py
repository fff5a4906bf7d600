"""``rashomon build --from FILE --check``: the rows that cannot be used and how to fix them, and what the others become."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from app.text.escape import clean
from benchmarks.base import Benchmark
from benchmarks.build import BuildOptions
from benchmarks.rows.own_rows import RowCheck, TableCheck

_LISTED = 10
"""The most usable rows that are listed unless all are asked for."""


def check_rows(benchmark: Benchmark, file: Path, options: BuildOptions, *, as_json: bool, every: bool = False) -> int:
    """Print it, ``every`` row or the first usable ones; 1 where no row can be used."""
    found = benchmark.check_rows(file, options)
    if as_json:
        rows = [{"row": r.where, "usable": r.usable, "told": r.told, "mend": r.mend} for r in found.rows]
        print(json.dumps({"usable": found.usable, "rows": rows, "remarks": list(found.remarks)}, indent=2))
    else:
        print(summary(found))
        _print_unusable([row for row in found.rows if not row.usable])
        _print_usable([row for row in found.rows if row.usable], every=every)
    return 0 if found.usable else 1


def summary(found: TableCheck) -> str:
    """How many rows can be used, and what is to be said of all of them; harmless."""
    told = [f"{found.usable} of {len(found.rows)} rows can be used", *found.remarks]
    return clean("; ".join(told))


def _print_unusable(rows: Sequence[RowCheck]) -> None:
    for row in rows:
        print(f"\n✗ {clean(row.where)}: {clean(row.told)}")
        if row.mend:
            print(f"    {clean(row.mend)}")


def _print_usable(rows: Sequence[RowCheck], *, every: bool) -> None:
    listed = rows if every else rows[:_LISTED]
    if listed:
        print()
    for row in listed:
        print(f"✓ {clean(row.where)}: {clean(row.told)}" + (f" ({clean(row.mend)})" if row.mend else ""))
    if len(listed) < len(rows):
        print(f"  and {len(rows) - len(listed)} more rows that can be used; --all lists them.")
