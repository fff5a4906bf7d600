"""``rashomon build --from FILE --check``: unusable rows with their fixes, and the examples the other rows become."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from app.text.escape import clean
from benchmarks.base import Benchmark
from benchmarks.build import BuildOptions
from benchmarks.rows.row_checks import RowCheck, TableCheck

_MAX_LISTED = 10
"""The number of usable rows that are listed by default."""


def check_rows(benchmark: Benchmark, file: Path, options: BuildOptions, *, as_json: bool, every: bool = False) -> int:
    """Print the check of a table, with ``every`` usable row or the first few; return 1 if no row is usable."""
    check = benchmark.check_rows(file, options)
    if as_json:
        rows = [{"row": r.where, "usable": r.usable, "told": r.message, "mend": r.fix} for r in check.rows]
        print(json.dumps({"usable": check.usable, "rows": rows, "remarks": list(check.remarks)}, indent=2))
    else:
        print(summary(check))
        _print_unusable([row for row in check.rows if not row.usable])
        _print_usable([row for row in check.rows if row.usable], every=every)
    return 0 if check.usable else 1


def summary(check: TableCheck) -> str:
    """Return the number of usable rows and the remarks about the table, escaped for the terminal."""
    return clean("; ".join([f"{check.usable} of {len(check.rows)} rows can be used", *check.remarks]))


def _print_unusable(rows: Sequence[RowCheck]) -> None:
    for row in rows:
        print(f"\n✗ {clean(row.where)}: {clean(row.message)}")
        if row.fix:
            print(f"    {clean(row.fix)}")


def _print_usable(rows: Sequence[RowCheck], *, every: bool) -> None:
    listed = rows if every else rows[:_MAX_LISTED]
    if listed:
        print()
    for row in listed:
        print(f"✓ {clean(row.where)}: {clean(row.message)}" + (f" ({clean(row.fix)})" if row.fix else ""))
    if len(listed) < len(rows):
        print(f"  and {len(rows) - len(listed)} more usable rows; --all lists them.")
