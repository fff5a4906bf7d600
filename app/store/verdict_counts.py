"""Counts of the verdicts of a run's first judge, read repeatedly: only what is new is counted."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from app.store.run_store import RunStore
from app.store.sample_lists import displayable
from judges.base import newest


class VerdictKind(NamedTuple):
    """Verdicts that are counted as one: condition, data source and row's rule, the end of the answer, and the verdict."""

    condition: str
    source: str
    rule: str
    finish_reason: str
    status: str
    label: str
    behaviour: str


class CountingStore(RunStore):
    """A run whose verdicts can be counted."""

    def snapshot(self) -> None:
        """Read from one snapshot from now on."""
        self._db.execute("BEGIN")

    def verdicts_after(self, last: int, judge: str) -> tuple[int, Counter[VerdictKind]]:
        """Return the highest id of a verdict, and the numbers of the verdicts after ``last``."""
        ((highest,),) = self._rows("SELECT coalesce(max(id), 0) FROM verdict")
        rows = self._rows(
            "SELECT s.condition, json_extract(s.strata, '$.source'), json_extract(s.strata, '$.trust'), g.finish_reason,"
            " v.status, v.label, v.behaviour, count(*) FROM verdict v"
            " JOIN generation g ON g.id = v.generation AND g.accepted JOIN sample s ON s.ordinal = g.instance"
            " WHERE v.id > ? AND v.id <= ? AND v.accepted AND v.judge = ? GROUP BY 1, 2, 3, 4, 5, 6, 7",
            (last, highest, judge),
        )
        counts = Counter[VerdictKind]()
        for *values, count in rows:
            counts[VerdictKind(*(displayable(value or "") for value in values))] += count
        return highest, counts

    def sources(self) -> frozenset[str]:
        """Return the data sources of the instances."""
        rows = self._rows("SELECT DISTINCT json_extract(strata, '$.source') FROM sample")
        return frozenset(displayable(source or "") for (source,) in rows)


class VerdictCounts:
    """The verdicts of a run's first judge so far, None before it has judged anything. Not thread-safe."""

    def __init__(self) -> None:
        self.judge: str | None = None
        self.counts = Counter[VerdictKind]()
        self._last = 0

    def read(self, store: CountingStore) -> None:
        """Count the verdicts that are new in ``store``, which must be one snapshot."""
        progress = store.progress()
        judge = newest(store.meta("spec")["judge"][0], {judge for p in progress for judge in p.judged})
        if judge != self.judge:
            self.judge, self._last = judge, 0
            self.counts.clear()
        if judge is None:
            return
        total = sum(p.judged[judge].total for p in progress if judge in p.judged)
        self._add(store, judge)
        if self.counts.total() != total:
            # Some verdicts were set aside meanwhile, so count all again.
            self._last = 0
            self.counts.clear()
            self._add(store, judge)

    def _add(self, store: CountingStore, judge: str) -> None:
        self._last, counts = store.verdicts_after(self._last, judge)
        self.counts += counts
