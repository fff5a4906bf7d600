"""Verdicts: what judges and people said of a run's answers, kept beside the progress counters."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from app.store.database import PAGE, Database, storable
from benchmarks.base import Generation, Record, Verdict, canonical_json, instance_from_json


class Verdicts(Database):
    """The part of a run's store that is about judging."""

    def unjudged(self, judge: str, conditions: Sequence[str] = (), *, after: int = -1) -> Iterator[tuple[int, Record]]:
        """The answers of ``conditions`` (all if empty) without a verdict of ``judge``: (generation id, record).

        In order of generation id, from the first one greater than ``after``; a page in memory at a time. An answer that
        is an error is not judged, and one that is judged by a sibling's answer is judged only when that one is there.
        """
        wanted = f" AND i.condition IN ({', '.join('?' * len(conditions))})" if conditions else ""
        while True:
            rows = self._rows(
                "SELECT g.id, i.ordinal, i.body, i.basis FROM generation g JOIN instance i ON i.ordinal = g.instance"
                " WHERE g.accepted AND i.done AND g.finish_reason != 'error' AND g.id > ?"
                " AND (i.basis IS NULL OR (SELECT b.done FROM instance b WHERE b.ordinal = i.basis))"
                " AND g.step = (SELECT max(step) FROM generation WHERE instance = g.instance AND accepted)"
                " AND NOT EXISTS (SELECT 1 FROM verdict v WHERE v.generation = g.id AND v.judge = ? AND v.accepted)"
                f"{wanted} ORDER BY g.id LIMIT {PAGE}",
                (after, judge, *conditions),
            )
            if not rows:
                return
            after = rows[-1][0]
            marks = ", ".join("?" * len(rows))
            generations = self._generations(f"instance IN ({marks})", [row[1] for row in rows])
            bases = self._answers([row[3] for row in rows if row[3] is not None])
            for generation, ordinal, body, basis in rows:
                instance = instance_from_json(json.loads(body))
                yield generation, Record(instance, tuple(generations[ordinal]), basis=bases.get(basis))

    def basis_of(self, ordinal: int) -> tuple[bool, Generation | None]:
        """Whether an instance's answer can be judged as far as its sibling's goes, and that sibling's answer.

        (True, None) where it has no such sibling.
        """
        rows = self._rows(
            "SELECT b.ordinal, b.done FROM instance i JOIN instance b ON b.ordinal = i.basis WHERE i.ordinal = ?",
            (ordinal,),
        )
        if not rows:
            return True, None
        ((basis, done),) = rows
        return bool(done), self._answers([basis])[basis] if done else None

    def _answers(self, ordinals: Sequence[int]) -> dict[int | None, Generation]:
        """The answers of those of ``ordinals`` that are done."""
        marks = ", ".join("?" * len(ordinals))
        found = self._generations(
            f"instance IN (SELECT ordinal FROM instance WHERE done AND ordinal IN ({marks}))", ordinals
        )
        return {ordinal: generations[-1] for ordinal, generations in found.items()}

    def answer_of(self, instance: str) -> tuple[int, str] | None:
        """(generation id, condition) of an instance's answer, if it has one that is no error."""
        rows = self._rows(
            "SELECT g.id, i.condition FROM generation g JOIN instance i ON i.ordinal = g.instance WHERE i.id = ?"
            " AND g.accepted AND i.done AND g.finish_reason != 'error' ORDER BY g.step DESC LIMIT 1",
            (instance,),
        )
        return (rows[0][0], rows[0][1]) if rows else None

    def labels(self, judge: str) -> dict[int, tuple[str, str | None]]:
        """The status and the label that ``judge`` gave each instance's answer, by the instance's ordinal."""
        rows = self._rows(
            "SELECT g.instance, v.status, v.label FROM verdict v JOIN generation g ON g.id = v.generation"
            " WHERE v.accepted AND g.accepted AND v.judge = ?",
            (judge,),
        )
        return {ordinal: (status, label) for ordinal, status, label in rows}

    def add_verdicts(self, verdicts: Sequence[tuple[int, str, Verdict, bool]]) -> None:
        """Make verdicts durable: (generation id, condition, verdict, whether its label is right).

        What the same judge said of the same answer before is set aside.
        """
        now = time.time()
        with self._transaction():
            for generation, condition, verdict, correct in verdicts:
                self._set_aside(verdict.judge, "g.id = ?", (generation,))
                self._add_verdict(generation, condition, verdict, correct, now)

    def retract(self, judge: str, *, instance: str | None = None, status: str | None = None) -> int:
        """Set aside what ``judge`` said, of one instance or with one status; kept, no longer counted. How many it were."""
        where, values = "1", list[str]()
        if instance is not None:
            where, values = where + " AND i.id = ?", [*values, instance]
        if status is not None:
            where, values = where + " AND v.status = ?", [*values, status]
        with self._transaction():
            return self._set_aside(judge, where, values)

    def _set_aside(self, judge: str, where: str, values: Sequence[Any]) -> int:
        benchmark_says: dict[str, list[str]] | None = None
        found = self._db.execute(
            "SELECT v.id, i.condition, v.status, v.label FROM verdict v JOIN generation g ON g.id = v.generation"
            f" JOIN instance i ON i.ordinal = g.instance WHERE v.accepted AND g.accepted AND v.judge = ? AND {where}",
            (judge, *values),
        ).fetchall()
        for verdict, condition, status, label in found:
            benchmark_says = benchmark_says or self.meta("correct", {})
            self._db.execute("UPDATE verdict SET accepted = 0 WHERE id = ?", (verdict,))
            self._count_verdict(condition, judge, status, label in (benchmark_says or {}).get(condition, ()), -1)
        return len(found)

    def judge_usage(self, judge: str) -> tuple[int, int, int]:
        """What ``judge`` has used in this run, verdicts set aside included: calls, prompt tokens, completion tokens."""
        sums = "coalesce(sum(calls), 0), coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0)"
        ((calls, prompt, completion),) = self._rows(f"SELECT {sums} FROM verdict WHERE judge = ?", (judge,))
        return calls, prompt, completion

    def _add_verdict(self, generation: int | None, condition: str, verdict: Verdict, correct: bool, now: float) -> None:
        self._db.execute(
            "INSERT INTO verdict (generation, judge, status, label, reason, raw, flags, calls, prompt_tokens,"
            " completion_tokens, judged_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                generation,
                verdict.judge,
                verdict.status,
                verdict.label,
                storable(verdict.reason),
                None if verdict.raw is None else storable(verdict.raw),
                canonical_json(verdict.flags),
                verdict.calls,
                verdict.prompt_tokens,
                verdict.completion_tokens,
                now,
            ),
        )
        self._count_verdict(condition, verdict.judge, verdict.status, correct, 1)

    def _count_verdict(self, condition: str, judge: str, status: str, correct: bool, by: int) -> None:
        self._db.execute("INSERT OR IGNORE INTO judged (condition, judge) VALUES (?, ?)", (condition, judge))
        self._db.execute(
            "UPDATE judged SET labelled = labelled + ?, correct = correct + ?, unparsed = unparsed + ?,"
            " failed = failed + ? WHERE condition = ? AND judge = ?",
            (
                by * (status == "labelled"),
                by * correct,
                by * (status == "unparsed"),
                by * (status == "judge-failed"),
                condition,
                judge,
            ),
        )
