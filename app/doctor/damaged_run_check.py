"""Checks of one run: damage to its database, and the answers that can be saved."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from app.doctor.check_result import CheckResult
from app.store.integrity.row_digests import COLUMNS
from app.store.run_salvage import Salvage
from app.store.workspace import Workspace
from benchmarks.errors import StoreError

_MAX_LISTED = 5


def check_run(workspace: Workspace, folder: Path) -> Iterator[CheckResult]:
    """Yield the results of checking a run's whole database."""
    try:
        store = Salvage.read(folder)
    except StoreError as error:
        yield CheckResult("database", False, str(error), "restore the run from a backup, or delete it.")
        return
    with store:
        yield CheckResult("database", True, f"{folder} is a run's database")
        problems = _Problems()
        yield problems.check("pages", "intact, according to SQLite", store.find_broken_pages)
        counts: Counter[str] = Counter()

        def read_rows(report: Callable[[StoreError], None]) -> None:
            for table in COLUMNS:
                counts[table] = sum(1 for _ in store.valid(table, report))

        yield problems.check("rows", "unchanged since they were written", read_rows)
        yield problems.check("missing", "no row is missing", store.find_missing)
        yield problems.check("counters", "equal to the numbers of rows", store.find_wrong_counters)
        yield _digests(store)
        saved = sum(bool(row.answers) for row in store.saved(lambda _: None)) if problems.count else counts["instance"]
        message = (
            f"{counts['instance']} instances, {counts['generation']} answers and {counts['verdict']} verdicts are valid"
        )
        if not problems.count:
            yield CheckResult("to save", True, message)
            return
        command = f"{workspace.command()} adopt {shlex.quote(str(folder))}"
        yield CheckResult(
            "to save",
            False,
            f"{message}; {saved} instances have a valid answer",
            f"restore the run from a backup if you have one; `{command}` copies what is valid to a new run.",
        )


class _Problems:
    """A counter of the problems of all checks."""

    def __init__(self) -> None:
        self.count = 0

    def check(self, name: str, message: str, examine: Callable[[Callable[[StoreError], None]], None]) -> CheckResult:
        """Return what ``examine`` reports as one result; ``message`` is for a check without problems."""
        problems: list[str] = []
        count = 0

        def report(error: StoreError) -> None:
            nonlocal count
            count += 1
            if len(problems) < _MAX_LISTED:
                problems.append(_short(error))

        examine(report)
        self.count += count
        if not count:
            return CheckResult(name, True, message)
        more = f"; and {count - len(problems)} more" if count > len(problems) else ""
        return CheckResult(name, False, "; ".join(problems) + more)


def _digests(store: Salvage) -> CheckResult:
    try:
        before = store.undigested
    except StoreError as error:
        return CheckResult("digests", False, str(error))
    if before is None:
        return CheckResult("digests", True, "every row has had one since it was written")
    message = f"{before} answers were written without digests by an earlier version of Rashomon"
    return CheckResult("digests", True, message, "earlier damage to them cannot be detected.")


def _short(error: StoreError) -> str:
    place, reason = getattr(error, "where", None), getattr(error, "why", None)
    return f"{place}: {reason}" if place else str(error)
