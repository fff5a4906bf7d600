"""One run: what of its database is damaged, and what can be saved."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from app.doctor.finding import CheckResult
from app.store.integrity.digests import COLUMNS
from app.store.integrity.salvage import Salvage
from app.store.workspace import Workspace
from benchmarks.errors import StoreError

_SHOWN = 5


def examine_run(workspace: Workspace, folder: Path) -> Iterator[CheckResult]:
    """Yield what there is to find in the database of a run, all of which is read."""
    try:
        store = Salvage.read(folder)
    except StoreError as error:
        yield CheckResult("database", False, str(error), "restore the run from a copy, or remove it.")
        return
    with store:
        yield CheckResult("database", True, f"{folder}, with the tables of a run and nothing else")
        problems = _Problems()
        yield problems.finding("pages", "whole, as SQLite examines them", store.find_broken_pages)
        counts: Counter[str] = Counter()

        def read_rows(report: Callable[[StoreError], None]) -> None:
            for table in COLUMNS:
                counts[table] = sum(1 for _ in store.valid(table, report))

        yield problems.finding("rows", "each as it was written", read_rows)
        yield problems.finding("missing", "no row is", store.find_missing)
        yield problems.finding("counters", "equal to a count of the rows", store.find_wrong_counters)
        yield _digests(store)
        saved = sum(bool(row.answers) for row in store.saved(lambda _: None)) if problems.count else counts["instance"]
        told = (
            f"{counts['instance']} instances, {counts['generation']} answers and {counts['verdict']} verdicts are valid"
        )
        if not problems.count:
            yield CheckResult("to save", True, told)
            return
        command = f"{workspace.command()} adopt {shlex.quote(str(folder))}"
        yield CheckResult(
            "to save",
            False,
            f"{told}; {saved} instances have a valid answer",
            f"restore the run from a copy if there is one; `{command}` makes a new run of what is valid.",
        )


class _Problems:
    """Counts what is wrong, of all that is examined."""

    def __init__(self) -> None:
        self.count = 0

    def finding(self, what: str, fine: str, examine: Callable[[Callable[[StoreError], None]], None]) -> CheckResult:
        """Return what ``examine`` reports as one finding."""
        problems: list[str] = []
        count = 0

        def report(error: StoreError) -> None:
            nonlocal count
            count += 1
            if len(problems) < _SHOWN:
                problems.append(_short(error))

        examine(report)
        self.count += count
        if not count:
            return CheckResult(what, True, fine)
        more = f"; and {count - len(problems)} more" if count > len(problems) else ""
        return CheckResult(what, False, "; ".join(problems) + more)


def _digests(store: Salvage) -> CheckResult:
    try:
        before = store.undigested
    except StoreError as error:
        return CheckResult("digests", False, str(error))
    if before is None:
        return CheckResult("digests", True, "every row carries one since it was written")
    told = f"{before} answers were written without digests, by an earlier Rashomon"
    return CheckResult("digests", True, told, "damage that they took before they had digests would not be noticed.")


def _short(error: StoreError) -> str:
    where, why = getattr(error, "where", None), getattr(error, "why", None)
    return f"{where}: {why}" if where else str(error)
