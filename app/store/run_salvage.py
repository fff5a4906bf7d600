"""Salvage of a damaged run: its valid rows, one by one, and a report of every other row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from app.store.integrity import stored_meta, stored_values
from app.store.integrity.row_digests import COLUMNS, COUNTED, EMPTY, KEYS
from app.store.run_database import DATABASE
from app.store.run_store import RunStore
from app.store.sqlite_errors import DamagedError
from app.store.verified_rows import PAGE, Row
from benchmarks.errors import StoreError
from benchmarks.vocabulary import Generation, Instance, Verdict

Report = Callable[[StoreError], None]
"""A callback for each row that cannot be read; the error names the row and the reason."""


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """A valid answer, with the digest of its request, its engine and time, and its valid verdicts."""

    generation: Generation
    request: str
    engine: dict[str, Any]
    finished_at: float
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class SavedInstance:
    """A valid instance with its answers, one a step; none if any is damaged, so that the instance is asked again."""

    instance: Instance
    done: bool
    answers: tuple[SavedAnswer, ...]


class Salvage(RunStore):
    """A run's store that is read in spite of damage; opened through :meth:`read`."""

    def saved(self, report: Report) -> Iterator[SavedInstance]:
        """Yield every valid instance in order, a few rows in memory at a time, without anything set aside."""
        engines: dict[int, dict[str, Any]] = {}
        for row in self.valid("engine", report):
            engines[row["id"]] = stored_meta.engine_info(row["info"])
        for row in self.valid("instance", report):
            answers = self._saved_answers(row, engines, report)
            yield SavedInstance(self.instance(tuple(row.values())), bool(row["done"] and answers), answers)

    def saved_meta(self, report: Report) -> dict[str, Any]:
        """Return the valid values stored with the run."""
        return {row["key"]: stored_meta.meta_value(row["key"], row["value"]) for row in self.valid("meta", report)}

    def valid(self, table: str, report: Report) -> Iterator[Row]:
        """Yield every valid row of a table, in the order of its key; report the others."""
        key, last = KEYS[table][0], -1
        if key not in ("id", "ordinal"):
            yield from self._valid_rows(table, "", (), report)
            return
        try:
            (end,) = self._ids(f"SELECT coalesce(max({key}), -1) FROM {table}")
        except StoreError as error:
            report(error)
            end = self._tallies().get(table, EMPTY)[0]
        while last < end:
            where, values = f"WHERE r.{key} > ? ORDER BY r.{key} LIMIT {PAGE}", (last,)
            try:
                rows = self._stored(table, where, values)
                for row in rows:
                    self._parsed(table, row, _PARSERS[table])
            except StoreError:
                rows = []
                for number in range(last + 1, min(last + PAGE, end) + 1):
                    rows += self._valid_rows(table, f"WHERE r.{key} = ?", (number,), report)
                last = min(last + PAGE, end)
            else:
                if not rows or rows[-1][key] <= last:
                    break
                last = rows[-1][key]
            yield from rows

    def _valid_rows(self, table: str, where: str, values: tuple[Any, ...], report: Report) -> Iterator[Row]:
        try:
            keys = self._rows(f"SELECT {', '.join(f'r.{key}' for key in KEYS[table])} FROM {table} r {where}", values)
        except StoreError as error:
            report(error)
            return
        for key in keys:
            try:
                for row in self._stored(table, f"WHERE {' AND '.join(f'r.{part} = ?' for part in KEYS[table])}", key):
                    self._parsed(table, row, _PARSERS[table])
                    yield row
            except StoreError as error:
                report(error)

    def _saved_answers(self, row: Row, engines: dict[int, dict[str, Any]], report: Report) -> tuple[SavedAnswer, ...]:
        where = "WHERE r.accepted AND r.instance = ? ORDER BY r.step"
        try:
            rows = self._stored("generation", where, (row["ordinal"],))
            generations = self._generations({row["ordinal"]: row["id"]}).get(row["ordinal"], [])
            for answer in rows:
                if answer["engine"] not in engines:
                    raise self.damaged("generation", answer, "its engine is missing")
        except StoreError as error:
            report(error)
            return ()
        if row["done"] and not rows:
            report(self.damaged("instance", row, "its answer is missing"))
        return tuple(
            SavedAnswer(
                generation,
                answer["request"],
                engines[answer["engine"]],
                answer["finished_at"],
                self._saved_verdicts(answer, report),
            )
            for answer, generation in zip(rows, generations, strict=True)
        )

    def _saved_verdicts(self, answer: Row, report: Report) -> tuple[Verdict, ...]:
        rows = self._valid_rows("verdict", "WHERE r.accepted AND r.generation = ?", (answer["id"],), report)
        return tuple(stored_values.verdict(tuple(row.values())) for row in rows)

    def find_missing(self, report: Report, tables: Iterable[str] = COUNTED) -> None:
        """Report those of the tables that have not all the rows that were written."""
        stored_tallies = self._tallies()
        for table in tables:
            try:
                ((count, total),) = self._rows(
                    f"SELECT count(*), coalesce(digest_sum(r.digest), 0) FROM {COUNTED[table]}"
                )
                self._compare({table: (count, total)}, stored_tallies)
            except StoreError as error:
                report(error)

    def find_wrong_counters(self, report: Report) -> None:
        """Report counters that do not match the rows, and samples that do not match their instances."""
        try:
            progress, judge_counts = self.counted()
            counters = self._counters()
            for condition in {**progress, **counters.progress}:
                counted_rows, stored_rows = (_rounded(rows.get(condition)) for rows in (progress, counters.progress))
                if counted_rows != stored_rows:
                    report(DamagedError(self.folder, f"table progress, row {condition!r:.60}", "its counts are wrong"))
            for key in {**judge_counts, **counters.judged}:
                if judge_counts.get(key) != counters.judged.get(key):
                    report(DamagedError(self.folder, f"table judged, row {key!r:.60}", "its counts are wrong"))
            if self._rows(
                "SELECT 1 FROM instance i LEFT JOIN sample s ON s.ordinal = i.ordinal AND s.id = i.id"
                " AND s.condition = i.condition WHERE s.ordinal IS NULL LIMIT 1"
            ):
                report(DamagedError(self.folder, "table sample", "it does not list the instances there are"))
        except StoreError as error:
            report(error)

    def find_broken_pages(self, report: Report) -> None:
        """Report the findings of SQLite's own check of pages, indexes and foreign keys."""
        try:
            for (problem,) in self._rows("PRAGMA integrity_check(10)"):
                if problem != "ok":
                    report(DamagedError(self.folder, DATABASE, str(problem).strip()))
            for table, row, *_ in self._rows("PRAGMA foreign_key_check")[:10]:
                report(DamagedError(self.folder, f"table {table}, row {row}", "what it belongs to is missing"))
        except StoreError as error:
            report(error)


def _rounded(row: Row | None) -> Row | None:
    return None if row is None else {**row, "seconds": round(row["seconds"], 3)}


_PARSERS: dict[str, Callable[[Row], Any]] = {
    "meta": lambda row: stored_meta.meta_value(row["key"], row["value"]),
    "instance": lambda row: stored_values.instance(tuple(row.values())),
    "engine": lambda row: stored_meta.engine_info(row["info"]),
    "generation": lambda row: stored_values.generation("", tuple(row.values())),
    "verdict": lambda row: stored_values.verdict(tuple(row.values())),
    "progress": stored_values.counts,
    "judged": stored_values.counts,
}
assert set(_PARSERS) == set(COLUMNS)
