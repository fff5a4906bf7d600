"""``rashomon build --from FILE --check``: what each row becomes, or what is wrong with it and how to mend it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from app.report.text import clean
from benchmarks.base import Benchmark
from benchmarks.build import BuildOptions
from benchmarks.rows import RowCheck, RowsCheck


def check_rows(benchmark: Benchmark, file: Path, options: BuildOptions, *, as_json: bool) -> int:
    """Print it; 1 where no row can be used."""
    found = benchmark.check_rows(file, options)
    if as_json:
        rows = [{"row": r.where, "usable": r.usable, "told": r.told, "mend": r.mend} for r in found.rows]
        print(json.dumps({"usable": found.usable, "rows": rows, "remarks": list(found.remarks)}, indent=2))
    else:
        _print(found.rows)
        print(summary(found))
    return 0 if found.usable else 1


def summary(found: RowsCheck) -> str:
    """How many rows can be used, and what is to be said of all of them; harmless."""
    told = [f"{found.usable} of {len(found.rows)} rows can be used", *found.remarks]
    return clean("; ".join(told))


def _print(rows: Sequence[RowCheck]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from app.report.console import Terminal

    table = Table("", "row", "what it becomes, or what is wrong", "how to mend it", box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        mark = Text("✓", "green") if row.usable else Text("✗", "red")
        table.add_row(mark, *(Text(clean(cell)) for cell in (row.where, row.told, row.mend)))
    Terminal().print(table)
