"""Tail of a run: its newest contents, read repeatedly without reading the whole run again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.store.run import RunStore
from app.store.samples import displayable
from benchmarks.vocabulary import Record
from judges.base import newest


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory use in bytes, as recorded with the newest answer; None if it was not recorded."""

    active: int | None = None
    cache: int | None = None


@dataclass(frozen=True, slots=True)
class RunUpdate:
    """The newest contents of a run.

    ``judge`` is the id of the run's first judge, None before it has judged anything. ``labels`` counts its labels by condition,
    with "unparsed", "undecided" and "judge-failed" in place of a missing label.
    """

    judge: str | None = None
    labels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    record: Record | None = None
    """The instance with the newest answer."""
    memory: MemoryUse = MemoryUse()
    remarks: tuple[str, ...] = ()
    canary: Mapping[str, Any] | None = None
    """The newest result of the batch-invariance probe."""
    data: str | None = None
    """The folder of the build, with the media."""


class _Store(RunStore):
    def verdicts_after(self, last: int, judge: str) -> tuple[int, list[tuple[str, str, int]]]:
        """Return the highest id of a verdict, and for verdicts after ``last``: condition, label or status, count."""
        ((highest,),) = self._rows("SELECT coalesce(max(id), 0) FROM verdict")
        rows = self._rows(
            "SELECT i.condition, coalesce(v.label, v.status), count(*) FROM verdict v"
            " JOIN generation g ON g.id = v.generation AND g.accepted JOIN instance i ON i.ordinal = g.instance"
            " WHERE v.id > ? AND v.id <= ? AND v.accepted AND v.judge = ? GROUP BY 1, 2",
            (last, highest, judge),
        )
        return highest, [(displayable(condition), displayable(label), count) for condition, label, count in rows]

    def newest_instance(self) -> str | None:
        rows = self._rows(
            "SELECT i.id FROM generation g JOIN instance i ON i.ordinal = g.instance WHERE g.accepted"
            " ORDER BY g.id DESC LIMIT 1"
        )
        return rows[0][0] if rows else None

    def newest_memory(self) -> MemoryUse:
        rows = self._rows("SELECT active_memory, cache_memory FROM generation ORDER BY id DESC LIMIT 1")
        return MemoryUse(*(size if isinstance(size, int) else None for size in rows[0])) if rows else MemoryUse()

    def snapshot(self) -> None:
        """Read from one snapshot from now on."""
        self._db.execute("BEGIN")


class Tail:
    """Reader of one run's newest contents. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._judge: str | None = None
        self._last = 0
        self._labels: dict[str, Counter[str]] = defaultdict(Counter)

    def read(self) -> RunUpdate:
        """Read the newest contents. Raises StoreError."""
        with _Store.read(self.folder) as store:
            store.snapshot()
            self._count(store)
            name = store.newest_instance()
            record = next(store.records(only=name), None) if name is not None else None
            canary = store.meta("canary", [])
            return RunUpdate(
                self._judge,
                {condition: dict(counts) for condition, counts in self._labels.items()},
                record,
                store.newest_memory(),
                tuple(store.meta("remarks", [])),
                canary[-1] if canary else None,
                store.meta("data"),
            )

    def _count(self, store: _Store) -> None:
        progress = store.progress()
        judge = newest(store.meta("spec")["judge"][0], {judge for p in progress for judge in p.judged})
        if judge != self._judge:
            self._judge, self._last = judge, 0
            self._labels.clear()
        if judge is None:
            return
        counts = [p.judged[judge] for p in progress if judge in p.judged]
        total = sum(count.total for count in counts)
        self._add(store, judge)
        if sum(sum(label_counts.values()) for label_counts in self._labels.values()) != total:
            # Some verdicts were set aside meanwhile, so count all again.
            self._last = 0
            self._labels.clear()
            self._add(store, judge)

    def _add(self, store: _Store, judge: str) -> None:
        self._last, rows = store.verdicts_after(self._last, judge)
        for condition, label, count in rows:
            self._labels[condition][label] += count
