"""RunStore: the one module that owns a run's SQL.

A run is a folder: ``run.sqlite`` (the truth), ``spec.toml`` (what was asked, for people) and ``lock``. An answer is
durable when :meth:`RunStore.commit` returns; the progress counters are kept in the same transaction.
"""

from __future__ import annotations

import json
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from app.store.database import PAGE, storable
from app.store.ownership import new_id
from app.store.rows import Answer, Judged, Pending, Place, Progress
from app.store.samples import Samples
from app.store.schema import LIST_SAMPLES
from benchmarks.base import Instance, Record, Verdict, canonical_json, instance_from_json, instance_to_json

_FIGURES = ("condition", "total", "done", "errors", "truncated", "tokens", "seconds", "peak_memory")


class RunStore(Samples):
    """One run's store. Open it through :meth:`create`, :meth:`open` or :meth:`read`."""

    @classmethod
    def create(
        cls,
        folder: Path,
        meta: Mapping[str, Any],
        instances: Iterable[Instance],
        basis: Callable[[str], str | None] = lambda condition: None,
    ) -> Self:
        """A new run in ``folder``, which is there and empty, planned whole in one transaction.

        ``basis`` is ``Benchmark.basis``. Raises StoreFullError, and StoreError where the folder cannot be written.
        """
        store = cls._connect(folder)
        with store._transaction():
            for key, value in {**meta, "id": new_id()}.items():
                store._store(key, value)
            totals: dict[str, int] = defaultdict(int)
            places: dict[tuple[str, str], int] = {}
            for ordinal, instance in enumerate(instances):
                totals[instance.condition] += 1
                places[instance.group, instance.condition] = ordinal
                body = storable(canonical_json(instance_to_json(instance)))
                row = (ordinal, storable(instance.id), instance.condition, body)
                store._db.execute("INSERT INTO instance (ordinal, id, condition, body) VALUES (?, ?, ?, ?)", row)
            store._db.execute(LIST_SAMPLES)
            store._db.executemany("INSERT INTO progress (condition, total) VALUES (?, ?)", totals.items())
            found = (
                (places[group, needed], ordinal)
                for (group, condition), ordinal in places.items()
                if (needed := basis(condition)) is not None and (group, needed) in places
            )
            store._db.executemany("UPDATE instance SET basis = ? WHERE ordinal = ?", found)
        return store

    def progress(self) -> list[Progress]:
        """How far each condition is, in the order the build first shows them."""
        judged: dict[str, dict[str, Judged]] = defaultdict(dict)
        for condition, judge, *counts in self._rows(
            "SELECT condition, judge, labelled, correct, unparsed, failed FROM judged ORDER BY judge"
        ):
            judged[condition][judge] = Judged(*counts)
        rows = self._rows(f"SELECT {', '.join(_FIGURES)} FROM progress")
        order = self.meta("conditions", [])
        rows.sort(key=lambda row: order.index(row[0]) if row[0] in order else len(order))
        return [Progress(**dict(zip(_FIGURES, row, strict=True)), judged=judged[row[0]]) for row in rows]

    def version(self) -> tuple[int, ...]:
        """Numbers that are others whenever an answer or a verdict was added or set aside since."""
        counts = (
            f"(SELECT coalesce(max(id), 0) FROM {table}), (SELECT count(*) FROM {table} WHERE accepted)"
            for table in ("generation", "verdict")
        )
        return tuple(self._rows(f"SELECT {', '.join(counts)}")[0])

    # --- answering -------------------------------------------------------------------------------

    def pending(self, conditions: Sequence[str] = (), *, only: Sequence[int] | None = None) -> Iterator[Pending]:
        """The instances that are not done, in order, a page in memory at a time; ``only`` those of these ordinals."""
        last, wanted, values = -1, "", list[Any](conditions)
        if conditions:
            wanted = f" AND condition IN ({', '.join('?' * len(conditions))})"
        if only is not None:
            wanted += " AND ordinal IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(list(only)))
        while True:
            rows = self._rows(
                f"SELECT ordinal, body FROM instance WHERE NOT done AND ordinal > ?{wanted} ORDER BY ordinal LIMIT {PAGE}",
                (last, *values),
            )
            if not rows:
                return
            first, last = rows[0][0], rows[-1][0]
            earlier = self._generations("instance BETWEEN ? AND ?", (first, last))
            for ordinal, body in rows:
                yield Pending(ordinal, instance_from_json(json.loads(body)), tuple(earlier.get(ordinal, ())))

    def places(self) -> list[Place]:
        """Where each instance stands, in order."""
        rows = self._rows(
            "SELECT ordinal, json_extract(body, '$.group'), condition, done FROM instance ORDER BY ordinal"
        )
        return [Place(ordinal, str(group), condition, bool(done)) for ordinal, group, condition, done in rows]

    def use_engine(self, info: Mapping[str, Any]) -> None:
        """Name the engine whose answers are committed from now on."""
        text = canonical_json(info)
        with self._transaction():
            self._db.execute("INSERT OR IGNORE INTO engine (info) VALUES (?)", (text,))
        ((self._engine_id,),) = self._rows("SELECT id FROM engine WHERE info = ?", (text,))

    def commit(self, answers: Sequence[Answer]) -> None:
        """Make answers and their verdicts durable, in one transaction with the counters.

        Raises StoreFullError when there is no room; then none of ``answers`` is kept.
        """
        now = time.time()
        with self._transaction():
            for answer in answers:
                generation = answer.generation
                cursor = self._db.execute(
                    "INSERT INTO generation (instance, step, request, text, finish_reason, tokens, prompt_tokens,"
                    " completion_tokens, prefill_s, decode_s, peak_memory, error, calls, active_memory, cache_memory, scores,"
                    " engine, finished_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        answer.ordinal,
                        answer.step,
                        answer.request_digest,
                        storable(generation.text),
                        generation.finish_reason,
                        array("I", generation.tokens).tobytes(),
                        generation.prompt_tokens,
                        generation.completion_tokens,
                        generation.prefill_s,
                        generation.decode_s,
                        generation.peak_memory,
                        None if generation.error is None else storable(generation.error),
                        generation.calls,
                        generation.active_memory,
                        generation.cache_memory,
                        json.dumps(generation.scores) if generation.scores else None,
                        self._engine_id,
                        now,
                    ),
                )
                seconds = (generation.prefill_s or 0) + (generation.decode_s or 0)
                self._db.execute(
                    "UPDATE progress SET done = done + ?, errors = errors + ?, truncated = truncated + ?,"
                    " tokens = tokens + ?, seconds = seconds + ?, peak_memory = max(peak_memory, ?) WHERE condition = ?",
                    (
                        answer.last,
                        generation.finish_reason == "error",
                        answer.last and generation.finish_reason == "length",
                        generation.completion_tokens or 0,
                        seconds,
                        generation.peak_memory or 0,
                        answer.condition,
                    ),
                )
                if answer.last:
                    self._db.execute("UPDATE instance SET done = 1 WHERE ordinal = ?", (answer.ordinal,))
                for verdict, correct in zip(answer.verdicts, answer.correct, strict=True):
                    self._add_verdict(cursor.lastrowid, answer.condition, verdict, correct, now)

    def kept_replies(self) -> int:
        """How many answers cost no call, because the reply to an equal request had been kept."""
        ((count,),) = self._rows("SELECT count(*) FROM generation WHERE accepted AND calls = 0")
        return int(count)

    def answer_usage(self) -> tuple[int, int, int]:
        """What answering has used in this run, answers set aside included: calls, prompt tokens, completion tokens."""
        sums = "coalesce(sum(calls), 0), coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0)"
        ((calls, prompt, completion),) = self._rows(f"SELECT {sums} FROM generation")
        return calls, prompt, completion

    def arrivals(self) -> tuple[int, float]:
        """How many answers came one after another, and the seconds that took; pauses of over a minute are left out."""
        ((count, seconds),) = self._rows(
            "SELECT count(gap), coalesce(sum(gap), 0) FROM (SELECT finished_at - lag(finished_at) OVER (ORDER BY finished_at)"
            " AS gap FROM generation g JOIN instance i ON i.ordinal = g.instance WHERE i.done AND g.accepted AND g.calls"
            " AND g.finish_reason != 'error') WHERE gap <= 60"
        )
        return int(count), float(seconds)

    # --- doing again -----------------------------------------------------------------------------

    def repeat(self, conditions: Sequence[str] = (), *, errors_only: bool = False) -> int:
        """Set the answers of ``conditions`` (all if empty) aside, kept but not accepted, to be asked again.

        With ``errors_only`` only those that failed. Returns how many instances are to be asked again. What was said of
        answers that are judged by one of these is set aside too.
        """
        answered = "EXISTS (SELECT 1 FROM generation g WHERE g.instance = i.ordinal AND g.accepted)"
        where, values = answered, list(conditions)
        if conditions:
            where += f" AND i.condition IN ({', '.join('?' * len(conditions))})"
        if errors_only:
            where += (
                " AND EXISTS (SELECT 1 FROM generation e"
                " WHERE e.instance = i.ordinal AND e.accepted AND e.finish_reason = 'error')"
            )
        with self._transaction():
            chosen = [row[0] for row in self._db.execute(f"SELECT ordinal FROM instance i WHERE {where}", values)]
            self._db.execute("CREATE TEMP TABLE chosen (ordinal INTEGER PRIMARY KEY)")
            self._db.executemany("INSERT INTO chosen VALUES (?)", ((ordinal,) for ordinal in chosen))
            self._db.execute(
                "UPDATE verdict SET accepted = 0 WHERE accepted AND generation IN (SELECT g.id FROM generation g"
                " JOIN instance i ON i.ordinal = g.instance WHERE i.basis IN chosen)"
            )
            self._db.execute("UPDATE generation SET accepted = 0 WHERE instance IN chosen")
            self._db.execute("UPDATE instance SET done = 0 WHERE ordinal IN chosen")
            self._db.execute("DROP TABLE chosen")
            self._recount()
        return len(chosen)

    def _recount(self) -> None:
        self._db.execute(
            "UPDATE progress SET (done, errors, truncated, tokens, seconds, peak_memory) = ("
            " SELECT count(DISTINCT CASE WHEN i.done THEN i.ordinal END),"
            "  coalesce(sum(g.finish_reason = 'error'), 0),"
            "  coalesce(sum(i.done AND g.finish_reason = 'length' AND g.step ="
            "   (SELECT max(step) FROM generation WHERE instance = i.ordinal AND accepted)), 0),"
            "  coalesce(sum(g.completion_tokens), 0),"
            "  coalesce(sum(coalesce(g.prefill_s, 0) + coalesce(g.decode_s, 0)), 0), coalesce(max(g.peak_memory), 0)"
            " FROM instance i LEFT JOIN generation g ON g.instance = i.ordinal AND g.accepted"
            " WHERE i.condition = progress.condition)"
        )
        benchmark_says = dict(self.meta("correct", {}))
        self._db.execute("DELETE FROM judged")
        for condition, judge, status, label, count in self._db.execute(
            "SELECT i.condition, v.judge, v.status, v.label, count(*) FROM verdict v"
            " JOIN generation g ON g.id = v.generation AND g.accepted JOIN instance i ON i.ordinal = g.instance"
            " WHERE v.accepted GROUP BY 1, 2, 3, 4"
        ).fetchall():
            right = label in benchmark_says.get(condition, ())
            self._count_verdict(condition, judge, status, False, count)
            if right:
                self._db.execute(
                    "UPDATE judged SET correct = correct + ? WHERE condition = ? AND judge = ?",
                    (count, condition, judge),
                )

    # --- reading ---------------------------------------------------------------------------------

    def ids(self) -> list[str]:
        """The ids of all instances, in order."""
        return [name for (name,) in self._rows("SELECT id FROM instance ORDER BY ordinal", ())]

    def records(self, *, only: str | None = None) -> Iterator[Record]:
        """Every instance with its accepted generations and their verdicts, in order; ``only`` one instance id."""
        where, values = ("id = ?", (only,)) if only is not None else ("1", ())
        last = -1
        while True:
            rows = self._rows(
                f"SELECT ordinal, body, basis FROM instance WHERE {where} AND ordinal > ? ORDER BY ordinal LIMIT {PAGE}",
                (*values, last),
            )
            if not rows:
                return
            first, last = rows[0][0], rows[-1][0]
            generations = self._generations("instance BETWEEN ? AND ?", (first, last))
            verdicts: dict[int, dict[str, Verdict]] = defaultdict(dict)
            for ordinal, judge, status, label, reason, raw, flags, *usage in self._rows(
                "SELECT g.instance, v.judge, v.status, v.label, v.reason, v.raw, v.flags, v.calls, v.prompt_tokens,"
                " v.completion_tokens FROM verdict v JOIN generation g ON g.id = v.generation"
                " WHERE g.accepted AND v.accepted AND g.instance BETWEEN ? AND ? ORDER BY v.judge",
                (first, last),
            ):
                verdict = Verdict(judge, status, label, reason, raw, tuple(json.loads(flags)), *usage)
                verdicts[ordinal][judge] = verdict
            bases = self._answers([basis for _, _, basis in rows if basis is not None])
            for ordinal, body, basis in rows:
                instance = instance_from_json(json.loads(body))
                answers = tuple(generations.get(ordinal, ()))
                yield Record(instance, answers, verdicts.get(ordinal, {}), bases.get(basis))

    def engines(self) -> list[dict[str, Any]]:
        """Every engine that answered in this run."""
        return [json.loads(info) for (info,) in self._rows("SELECT info FROM engine ORDER BY id")]
