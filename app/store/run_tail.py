"""Tail of a run: its newest contents, read repeatedly without reading the whole run again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.store.stored_answers import add_to_quality, empty_quality
from app.store.verdict_counts import CountingStore, VerdictCounts
from benchmarks.answer_quality import AnswerQuality
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Media, Record

_MOST_WITHOUT_MEDIA = 8
"""The newest answers among which one about media is looked for."""
_MOST_ANSWERS = 1000
"""The answers whose quality is read at a time, so that no reading of a long run takes long."""


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
    poor: tuple[str, ...] = ()
    """Clauses on answers without content; see :attr:`AnswerQuality.clauses`."""


class _Store(CountingStore):
    def newest_record(self, *, media: bool) -> Record | None:
        """Return the instance with the newest answer; with ``media``, rather one that has media, if it is recent."""
        limit = _MOST_WITHOUT_MEDIA if media else 1
        rows = self._rows("SELECT instance FROM generation WHERE accepted ORDER BY id DESC LIMIT ?", (limit,))
        ordinals = list(dict.fromkeys(ordinal for (ordinal,) in rows))
        newest: Record | None = None
        for ordinal in ordinals:
            record = next(self.records(at=[ordinal]), None)
            newest = newest or record
            if record is not None and any(isinstance(part, Media) for part in record.instance.parts):
                return record
        return newest

    def answered_after(self, last: int) -> list[tuple[int, int]]:
        """Return the ids of the next final answers after the id ``last``, with the ordinals of their instances."""
        rows = self._rows(
            "SELECT g.id, i.ordinal FROM generation g JOIN instance i ON i.ordinal = g.instance AND i.done"
            " WHERE g.id > ? AND g.accepted AND NOT EXISTS (SELECT 1 FROM generation l WHERE l.instance = g.instance"
            f" AND l.accepted AND l.step > g.step) ORDER BY g.id LIMIT {_MOST_ANSWERS}",
            (last,),
        )
        return [(number, ordinal) for number, ordinal in rows]

    def answered_until(self, last: int) -> int:
        """Return the number of final answers up to the id ``last``."""
        ((count,),) = self._rows(
            "SELECT count(*) FROM generation g JOIN instance i ON i.ordinal = g.instance AND i.done"
            " WHERE g.id <= ? AND g.accepted AND NOT EXISTS (SELECT 1 FROM generation l WHERE l.instance = g.instance"
            " AND l.accepted AND l.step > g.step)",
            (last,),
        )
        return int(count)

    def newest_memory(self) -> MemoryUse:
        rows = self._rows("SELECT active_memory, cache_memory FROM generation ORDER BY id DESC LIMIT 1")
        return MemoryUse(*(size if isinstance(size, int) else None for size in rows[0])) if rows else MemoryUse()


class Tail:
    """Reader of one run's newest contents; with ``media``, of the newest answer about media. Not thread-safe."""

    def __init__(self, folder: Path, *, media: bool = False) -> None:
        self.folder = folder
        self._media = media
        self._verdicts = VerdictCounts()
        self._quality: AnswerQuality | None = None
        self._last_answer = self._seen = 0

    def read(self) -> RunUpdate:
        """Read the newest contents. Raises StoreError."""
        with _Store.read(self.folder) as store:
            store.snapshot()
            self._verdicts.read(store)
            poor = self._read_quality(store)
            record = store.newest_record(media=self._media)
            canary = store.meta("canary", [])
            return RunUpdate(
                self._verdicts.judge,
                self._labels(),
                record,
                store.newest_memory(),
                tuple(store.meta("remarks", [])),
                canary[-1] if canary else None,
                store.meta("data"),
                poor,
            )

    def _read_quality(self, store: _Store) -> tuple[str, ...]:
        """Add the next answers to those whose quality is known, and return the clauses on all of these."""
        try:
            benchmark = get_benchmark(str(store.meta("spec")["benchmark"]))
        except SpecError:  # of another version, or of a package that is not installed
            return ()
        quality = self._quality = self._quality or empty_quality(benchmark, store.meta("spec"))
        if self._seen and store.answered_until(self._last_answer) != self._seen:  # some were set aside meanwhile
            self._last_answer = self._seen = 0
            quality = self._quality = empty_quality(benchmark, store.meta("spec"))
        answers = store.answered_after(self._last_answer)
        self._seen += len(answers)
        for record in store.records(at=[ordinal for _, ordinal in answers]) if answers else ():
            add_to_quality(quality, record, benchmark)
        self._last_answer = max((number for number, _ in answers), default=self._last_answer)
        return quality.clauses

    def _labels(self) -> dict[str, dict[str, int]]:
        labels: dict[str, dict[str, int]] = {}
        for kind, count in self._verdicts.counts.items():
            of_condition, label = labels.setdefault(kind.condition, {}), kind.label or kind.status
            of_condition[label] = of_condition.get(label, 0) + count
        return labels
