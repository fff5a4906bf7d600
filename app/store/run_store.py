"""RunStore: the store of a run.

A run is a folder with ``run.sqlite`` (the data), ``spec.toml`` (the spec, for people) and ``lock``. An answer is durable when
:meth:`RunStore.commit` returns; the progress counters are updated in the same transaction.
"""

from __future__ import annotations

import json
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from app.store.database_schema import LIST_SAMPLES
from app.store.integrity import stored_values
from app.store.integrity.row_digests import COLUMNS
from app.store.integrity.run_ownership import new_id
from app.store.run_database import storable
from app.store.run_records import RunRecords
from app.store.store_types import ConditionProgress, InstancePosition, JudgedCounts, NewAnswer, PendingInstance
from app.store.stored_verdicts import Counters
from app.store.verified_rows import PAGE, Row
from benchmarks.vocabulary import Instance, canonical_json, instance_to_json

_IMAGE = '"sha256":"'
_SHOWN = (
    f"CASE instr(r.body, '{_IMAGE}') WHEN 0 THEN s.\"group\""
    f" ELSE substr(r.body, instr(r.body, '{_IMAGE}') + {len(_IMAGE)}, 64) END"
)
"""The first image of an instance, or else its example. In a text, the quotation marks would be escaped."""

_REUSED = '"same":null'
"""A part of the origin of a reused answer, and of no other."""

_CREATION_CACHE = 64 << 20
"""The bytes of the database that are held while a run is created, whose index of ids is written in random order."""

_POSITIONS = 4096
"""The number of positions that are read at a time."""


class RunStore(RunRecords):
    """The store of a run, opened through :meth:`create`, :meth:`open` or :meth:`read`."""

    @classmethod
    def create(
        cls,
        folder: Path,
        meta: Mapping[str, Any],
        instances: Iterable[Instance],
        basis: Callable[[str], str | None] = lambda condition: None,
    ) -> Self:
        """Create a run in ``folder``, which exists and is empty, in a single transaction.

        ``basis`` is ``Benchmark.basis``. Raises StoreFullError, or StoreError if the folder cannot be written.
        """
        store = cls._connect(folder)
        try:
            store._fill(meta, instances, basis)
        except BaseException:
            store._db.close()
            raise
        return store

    def _fill(self, meta: Mapping[str, Any], instances: Iterable[Instance], basis: Callable[[str], str | None]) -> None:
        """Write the contents of a new run."""
        with self._explained():
            # Without a log, a new page is written once. Nobody else reads the run yet.
            self._db.execute("PRAGMA journal_mode = DELETE")
            self._db.execute(f"PRAGMA cache_size = -{_CREATION_CACHE >> 10}")
        with self._transaction():
            for key, value in {**meta, "id": new_id()}.items():
                self._store(key, value)
            totals: dict[str, int] = defaultdict(int)
            for ordinal, instance in enumerate(instances):
                totals[instance.condition] += 1
                row = {
                    "ordinal": ordinal,
                    "id": storable(instance.id),
                    "condition": instance.condition,
                    "body": storable(canonical_json(instance_to_json(instance))),
                    "done": 0,
                    "basis": None,
                }
                self._write("instance", row)
            self._db.execute(LIST_SAMPLES)
            for condition, total in totals.items():
                self._write(
                    "progress", {**dict.fromkeys(COLUMNS["progress"], 0), "condition": condition, "total": total}
                )
            for condition in totals:
                if (needed := basis(condition)) is not None and needed in totals:
                    self._set_bases(condition, needed)
        with self._explained():
            self._db.execute("PRAGMA cache_size = -2000")  # SQLite's default
            self._db.execute("PRAGMA journal_mode = WAL")

    def _set_bases(self, condition: str, needed: str) -> None:
        """Store the basis of the instances of ``condition``: the sibling under the condition ``needed``."""
        after = -1
        while pairs := self._rows(
            'SELECT s.ordinal, (SELECT b.ordinal FROM sample b WHERE b."group" = s."group" AND b.condition = ?'
            " ORDER BY b.ordinal DESC LIMIT 1) FROM sample s WHERE s.condition = ? AND s.ordinal > ?"
            ' AND NOT EXISTS (SELECT 1 FROM sample t WHERE t."group" = s."group" AND t.condition = s.condition'
            f" AND t.ordinal > s.ordinal) ORDER BY s.ordinal LIMIT {PAGE}",
            (needed, condition, after),
        ):
            for ordinal, sibling in pairs:
                if sibling is not None:
                    self._change("instance", [ordinal], basis=sibling)
            after = pairs[-1][0]

    def progress(self) -> list[ConditionProgress]:
        """Return the progress of each condition, in the benchmark's order. Raises DamagedError."""
        judge_counts: dict[str, dict[str, JudgedCounts]] = defaultdict(dict)
        with self._snapshot():
            for row in sorted(self._whole("judged"), key=lambda row: str(row["judge"])):
                counts = self._parsed("judged", row, stored_values.counts)
                condition, judge = counts.pop("condition"), counts.pop("judge")
                if any(counts.values()):  # all zero once every verdict was retracted
                    judge_counts[condition][judge] = JudgedCounts(**counts)
            rows = [self._parsed("progress", row, stored_values.counts) for row in self._whole("progress")]
            order = self.meta("conditions", [])
        rows.sort(key=lambda row: order.index(row["condition"]) if row["condition"] in order else len(order))
        return [ConditionProgress(**row, judged=judge_counts[row["condition"]]) for row in rows]

    def version(self) -> tuple[int, ...]:
        """Return numbers that change whenever an answer or a verdict is added or set aside."""
        counts = (
            f"(SELECT coalesce(max(id), 0) FROM {table}), (SELECT count(*) FROM {table} WHERE accepted)"
            for table in ("generation", "verdict")
        )
        return tuple(self._rows(f"SELECT {', '.join(counts)}")[0])

    def changed_since(self, version: Sequence[int]) -> list[int] | None:
        """Return the ordinals with an answer or a verdict that was added since :meth:`version`; None if any was set aside."""
        with self._snapshot():
            now = self.version()
            for place, table in ((0, "generation"), (2, "verdict")):
                (added,) = self._ids(f"SELECT coalesce(sum(accepted), 0) FROM {table} WHERE id > ?", (version[place],))
                if now[place + 1] - version[place + 1] != added:
                    return None
            return self._ids(
                "SELECT instance FROM generation WHERE id > ? UNION"
                " SELECT g.instance FROM verdict v JOIN generation g ON g.id = v.generation WHERE v.id > ?",
                (version[0], version[2]),
            )

    @property
    def has_answers(self) -> bool:
        """True if there is an answer that was not set aside."""
        return bool(self._rows("SELECT EXISTS (SELECT 1 FROM generation WHERE accepted)")[0][0])

    # --- answering -------------------------------------------------------------------------------

    def pending(
        self, conditions: Sequence[str] = (), *, only: Sequence[int] | None = None
    ) -> Iterator[PendingInstance]:
        """Yield the pending instances in order, reading a page at a time; ``only`` restricts them to these ordinals."""
        last, (restriction, values) = -1, _restriction(conditions, only)
        while True:
            with self._snapshot():
                where = f"WHERE NOT r.done AND r.ordinal > ?{restriction} ORDER BY r.ordinal LIMIT {PAGE}"
                rows = self._values("instance", where, (last, *values))
                earlier = self._generations({row[0]: row[1] for row in rows})
            if not rows:
                return
            last = self._last(rows, last)
            for row in rows:
                yield PendingInstance(row[0], self.instance(row), tuple(earlier.get(row[0], ())))

    def order_by_image(
        self, conditions: Sequence[str] = (), *, only: Sequence[int] | None = None
    ) -> tuple[array[int], array[int]]:
        """Return the ordinals of the pending instances with those that show the same image adjacent, and a number for each image.

        The first image of an instance counts; instances without one are adjacent where they are of one example. ``only``
        restricts the ordinals. Both arrays have an item of 4 bytes for each instance.
        """
        restriction, values = _restriction(conditions, only)
        ordinals, clusters = array("I"), array("I")
        for ordinal, first in self._streamed(
            "SELECT ordinal, min(ordinal) OVER (PARTITION BY shown) AS first FROM"
            f" (SELECT r.ordinal, {_SHOWN} AS shown FROM instance r JOIN sample s ON s.ordinal = r.ordinal"
            f" WHERE NOT r.done{restriction}) ORDER BY first, ordinal",
            values,
        ):
            ordinals.append(ordinal)
            clusters.append(first)
        return ordinals, clusters

    def positions(self) -> Iterator[InstancePosition]:
        """Yield the position of every instance, in order, reading many at a time."""
        after = -1
        while rows := self._rows(
            'SELECT s.ordinal, s."group", s.condition, i.done FROM sample s JOIN instance i ON i.ordinal = s.ordinal'
            f" WHERE s.ordinal > ? ORDER BY s.ordinal LIMIT {_POSITIONS}",
            (after,),
        ):
            for ordinal, group, condition, done in rows:
                yield InstancePosition(ordinal, str(group), str(condition), bool(done))
            after = rows[-1][0]

    def use_engine(self, info: Mapping[str, Any]) -> None:
        """Set the engine of the answers that are committed from now on."""
        with self._transaction():
            self._engine_id = self._engine(storable(canonical_json(info)))

    def _engine(self, text: str) -> int:
        """Return the number of an engine, given as JSON, after storing it if it is new. In a transaction."""
        engines = self._whole("engine")
        known = next((int(row["id"]) for row in engines if row["info"] == text), None)
        if known is not None:
            return known
        number = max((int(row["id"]) for row in engines), default=0) + 1
        self._write("engine", {"id": number, "info": text})
        return number

    def commit(self, answers: Sequence[NewAnswer], values: Mapping[str, Any] | None = None) -> None:
        """Store answers and their verdicts durably, in one transaction with the counters, and with ``values`` of the run.

        Raises StoreFullError if the disk is full; then none of ``answers`` is stored.
        """
        now = time.time()
        with self._transaction():
            (last,) = self._ids("SELECT coalesce(max(id), 0) FROM generation")
            (verdicts,) = self._ids("SELECT coalesce(max(id), 0) FROM verdict")
            counters = self._counters()
            engines = dict(self._engines)
            for number, answer in enumerate(answers, last + 1):
                generation = answer.generation
                engine = self._engine_id
                if answer.engine is not None:
                    text = storable(canonical_json(answer.engine))
                    engine = engines[text] = engines.get(text) or self._engine(text)
                self._write("generation", self._generation_row(number, answer, engine, now))
                counter = counters.of(answer.condition)
                counter["done"] += answer.last
                counter["errors"] += generation.finish_reason == "error"
                counter["truncated"] += answer.last and generation.finish_reason == "length"
                counter["reused"] += answer.last and generation.is_reused
                counter["tokens"] += 0 if generation.is_reused else generation.completion_tokens or 0
                counter["seconds"] += (generation.prefill_s or 0) + (generation.decode_s or 0)
                counter["peak_memory"] = max(counter["peak_memory"], generation.peak_memory or 0)
                for verdict in answer.verdicts:
                    verdicts += 1
                    self._write("verdict", self._verdict_row(verdicts, number, verdict, now))
                    score = self._score(answer.condition, verdict.label, verdict.flags)
                    counters.add(answer.condition, verdict.judge, verdict.status, score)
            self._change("instance", [answer.ordinal for answer in answers if answer.last], done=1)
            self._write_counters(counters)
            for key, value in (values or {}).items():
                self._store(key, value)
        self._engines = engines

    def _generation_row(self, number: int, answer: NewAnswer, engine: int | None, now: float) -> Row:
        generation = answer.generation
        return {
            "id": number,
            "instance": answer.ordinal,
            "step": answer.step,
            "accepted": 1,
            "request": answer.request_digest,
            "text": storable(generation.text),
            "finish_reason": generation.finish_reason,
            "tokens": array("I", generation.tokens).tobytes(),
            "prompt_tokens": generation.prompt_tokens,
            "completion_tokens": generation.completion_tokens,
            "prefill_s": generation.prefill_s,
            "decode_s": generation.decode_s,
            "peak_memory": generation.peak_memory,
            "error": None if generation.error is None else storable(generation.error),
            "calls": generation.calls,
            "active_memory": generation.active_memory,
            "cache_memory": generation.cache_memory,
            "scores": json.dumps(generation.scores) if generation.scores else None,
            "engine": engine,
            "finished_at": now if answer.finished_at is None else answer.finished_at,
            "origin": None if generation.origin is None else storable(canonical_json(asdict(generation.origin))),
        }

    # --- repeating -------------------------------------------------------------------------------

    def repeat(
        self, conditions: Sequence[str] = (), *, errors_only: bool = False, instances: Sequence[str] | None = None
    ) -> int:
        """Set the answers of ``conditions`` (all if empty) aside, so that their instances are asked again.

        With ``errors_only``, only failed answers; with ``instances``, only theirs, by id. Answers set aside stay in the store but
        are no longer accepted; verdicts that rest on one of them are set aside too. Return the number of instances to be asked
        again.
        """
        answered_sql = "EXISTS (SELECT 1 FROM generation g WHERE g.instance = i.ordinal AND g.accepted)"
        where, values = answered_sql, list(conditions)
        if conditions:
            where += f" AND i.condition IN ({', '.join('?' * len(conditions))})"
        if errors_only:
            where += (
                " AND EXISTS (SELECT 1 FROM generation e"
                " WHERE e.instance = i.ordinal AND e.accepted AND e.finish_reason = 'error')"
            )
        with self._transaction():
            chosen_ids = self._ids(f"SELECT ordinal FROM instance i WHERE {where}", values)
            if instances is not None:
                only = {self._ids("SELECT ordinal FROM instance WHERE id = ?", (id,))[0] for id in instances}
                chosen_ids = [ordinal for ordinal in chosen_ids if ordinal in only]
            self._db.execute("CREATE TEMP TABLE chosen (ordinal INTEGER PRIMARY KEY)")
            self._db.executemany("INSERT INTO chosen VALUES (?)", ((ordinal,) for ordinal in chosen_ids))
            counted_sql = (
                "FROM verdict v JOIN generation g ON g.id = v.generation JOIN instance i ON i.ordinal = g.instance"
                " WHERE v.accepted AND g.accepted AND"
            )
            for (digest,) in self._rows(
                f"SELECT v.digest {counted_sql} i.ordinal IN chosen AND (i.basis IS NULL OR i.basis NOT IN chosen)"
            ):
                self._count("verdict", digest, -1)
            judged_by_these = self._ids(f"SELECT v.id {counted_sql} i.basis IN chosen")
            answers = self._ids("SELECT id FROM generation WHERE accepted AND instance IN chosen")
            done = self._ids("SELECT ordinal FROM instance WHERE done AND ordinal IN chosen")
            self._db.execute("DROP TABLE chosen")
            self._change("verdict", judged_by_these, accepted=0, counted=(True, False))
            self._change("generation", answers, accepted=0, counted=(True, False))
            self._change("instance", done, done=0)
            self._recount()
        return len(chosen_ids)

    def repeated(self) -> frozenset[int]:
        """Return the ordinals of the instances of which an answer was set aside."""
        return frozenset(self._ids("SELECT DISTINCT instance FROM generation WHERE NOT accepted"))

    def _recount(self) -> None:
        counters = self._counters()
        progress, judge_counts = self.counted()
        for condition, row in progress.items():
            counters.of(condition).update(row)
        counters.judged = judge_counts
        self._write_counters(counters)

    def counted(self) -> tuple[dict[str, Row], dict[tuple[str, str], Row]]:
        """Count from the rows what the counters of conditions, and of judges by condition, should be."""
        is_last = "i.done AND g.step = (SELECT max(step) FROM generation WHERE instance = i.ordinal AND accepted)"
        is_reused = f"coalesce(instr({self._lacking.get('origin', 'g.origin')}, '{_REUSED}'), 0) > 0"
        progress = {
            row[0]: dict(zip(COLUMNS["progress"], row, strict=True))
            for row in self._rows(
                "SELECT i.condition, count(DISTINCT i.ordinal), count(DISTINCT CASE WHEN i.done THEN i.ordinal END),"
                " coalesce(sum(g.finish_reason = 'error'), 0),"
                f" coalesce(sum({is_last} AND g.finish_reason = 'length'), 0),"
                f" coalesce(sum(CASE WHEN {is_reused} THEN 0 ELSE g.completion_tokens END), 0),"
                " coalesce(sum(coalesce(g.prefill_s, 0) + coalesce(g.decode_s, 0)), 0), coalesce(max(g.peak_memory), 0),"
                f" coalesce(sum({is_last} AND {is_reused}), 0)"
                " FROM instance i LEFT JOIN generation g ON g.instance = i.ordinal AND g.accepted GROUP BY 1"
            )
        }
        counters = Counters(self.folder)
        for condition, judge, status, label, flags, count in self._rows(
            "SELECT i.condition, v.judge, v.status, v.label, v.flags, count(*) FROM verdict v"
            " JOIN generation g ON g.id = v.generation AND g.accepted JOIN instance i ON i.ordinal = g.instance"
            " WHERE v.accepted GROUP BY 1, 2, 3, 4, 5"
        ):
            score = self._score(condition, label, stored_values.flags_of(flags))
            counters.add(condition, judge, status, score, count)
        return progress, counters.judged


def _restriction(conditions: Sequence[str], only: Sequence[int] | None) -> tuple[str, list[Any]]:
    """Return SQL that restricts instances ``r`` to ``conditions`` (all if empty) and the ordinals ``only``, and its values."""
    sql, values = "", list[Any](conditions)
    if conditions:
        sql = f" AND r.condition IN ({', '.join('?' * len(conditions))})"
    if only is not None:
        sql += " AND r.ordinal IN (SELECT value FROM json_each(?))"
        values.append(json.dumps(list(only)))
    return sql, values
