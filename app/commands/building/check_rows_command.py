"""``rashomon build --from FILE --check``: unusable rows with their fixes, and the examples the other rows become."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from textwrap import indent

from app.exit_codes import DONE, FAILURES, EndedError
from app.json_output.builds_json import CheckedRow, CheckedTable
from app.json_output.json_envelope import envelope, plain
from app.json_output.json_only_output import print_own
from app.report.runs.portable_facts import portable_message
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks.base import Benchmark
from benchmarks.build import BuildOptions
from benchmarks.rows.row_checks import LEFT_OUT, RowCheck, TableCheck
from benchmarks.rows.sources import format_times

_MAX_LISTED = 10
"""The number of usable rows that are listed by default."""
_MAX_UNUSABLE = 100
"""The number of unusable rows that are listed by default, and of those with a warning."""


def check_rows(
    workspace: Workspace, benchmark: Benchmark, file: Path, options: BuildOptions, *, as_json: bool, every: bool = False
) -> int:
    """Print the check of a table, with ``every`` usable row or the first few; return 0.

    Raises EndedError if no row is usable.
    """
    check = benchmark.check_rows(file, options)
    if as_json:
        _print_json(check, lambda text: portable_message(text.replace(f"{file.parent}/", ""), workspace.path))
    else:
        print(summary(check))
        limit = None if every else _MAX_UNUSABLE
        _print_unusable(check, limit)
        _print_warnings(check, limit)
        _print_usable(check, every=every)
    if not check.usable:
        raise EndedError(FAILURES, f"no row of {file.name} can be used; repair the rows as listed.")
    return DONE


def summary(check: TableCheck) -> str:
    """Return the number of usable rows and the remarks about the table, escaped for the terminal."""
    return clean("; ".join([f"{check.usable} of {len(check.rows)} rows can be used", *check.remarks]))


def _print_json(check: TableCheck, portable: Callable[[str], str]) -> None:
    """Print a check as JSON, with ``portable`` messages, a row at a time: a table may have a million."""
    whole = CheckedTable(usable=check.usable, rows=(), remarks=tuple(map(portable, check.remarks)))
    before, rows, after = json.dumps(plain(envelope("build", whole)), indent=2).partition('"rows": [')
    print_own(f"{before}{rows}", end="")
    separator = "\n"
    for row in check.rows:
        message, fix, warning = map(portable, (row.message, row.fix, row.warning))
        entry = CheckedRow(row=row.where, usable=row.usable, message=message, fix=fix, warning=warning)
        print_own(separator + indent(json.dumps(plain(entry), indent=2), "      "), end="")
        separator = ",\n"
    print_own(after)


def _print_unusable(check: TableCheck, limit: int | None) -> None:
    """Print the unusable rows by reason; where there are more than the ``limit``, first the number of rows with each."""
    count = len(check.rows) - check.usable
    if limit is not None and count > limit:
        print()
        reasons = Counter(row.message.partition(": ")[0] for row in check.rows if not row.usable)
        for reason, rows in reasons.most_common(_MAX_LISTED):
            print(f"✗ {format_times(rows)}: {clean(reason)}")
    places: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in islice((row for row in check.rows if not row.usable), limit):
        places[row.message, row.fix].append(row.where)
    for (message, fix), where in places.items():
        print(f"\n✗ {clean(_joined(where))}: {clean(message)}")
        if fix:
            print(f"    {clean(fix)}")
    if limit is not None and count > limit:
        print(f"\n  and {count - limit} more unusable rows; --all lists them.")


def _joined(places: Sequence[str]) -> str:
    """Return the places of rows as a phrase: "rows.csv:2", or "rows.csv:2, 3 and 4 (3 rows)"."""
    if len(places) == 1:
        return places[0]
    start = places[0].rpartition(":")[0] + ":"
    names = [places[0], *(place.removeprefix(start) for place in places[1:])]
    return f"{', '.join(names[:-1])} and {names[-1]} ({len(names)} rows)"


def _print_warnings(check: TableCheck, limit: int | None) -> None:
    """Print the usable rows whose images may be useless."""
    for row in islice((row for row in check.rows if row.warning), limit):
        print(f"\n! {_line(row)}\n    {clean(row.warning)}")
    if limit is not None and check.rows.warnings > limit:
        print(f"\n  and {check.rows.warnings - limit} more rows with a warning; --all lists them.")


def _print_usable(check: TableCheck, *, every: bool) -> None:
    """Print the usable rows without a warning."""
    count = check.usable - check.rows.warnings
    listed = count if every else min(count, _MAX_LISTED)
    if listed:
        print()
    rows = [*islice((row for row in check.rows if row.usable and not row.warning), listed)]
    left_out: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        left_out[row.message.partition(LEFT_OUT)[2]].append(row.where)
    shared = {reason: places for reason, places in left_out.items() if reason and len(places) > 1}
    for row in rows:
        message, _, reason = row.message.partition(LEFT_OUT)
        print(f"✓ {_line(replace(row, message=message) if reason in shared else row)}")
    for reason, places in shared.items():
        print(f"  {clean(_joined(places))}: not {clean(reason)}")
    if listed < count:
        print(f"  and {count - listed} more usable rows; --all lists them.")


def _line(row: RowCheck) -> str:
    return f"{clean(row.where)}: {clean(row.message)}" + (f" ({clean(row.fix)})" if row.fix else "")
