"""Verdicts of judges and people on a run's answers, stored with the progress counters."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from app.store.integrity import stored_values
from app.store.integrity.row_digests import Tally
from app.store.run_database import Database, storable
from app.store.sqlite_errors import DamagedError
from app.store.store_types import COUNTS_FLAGS_KEY, SCORES_KEY
from app.store.verified_rows import PAGE, Row, Values
from benchmarks.vocabulary import Generation, Record, Verdict, canonical_json
from judges.base import Judge

_COUNTS = ("labelled", "correct", "unparsed", "failed", "undecided")


@dataclass
class Counters:
    """A run's counters while they are being changed: by condition, and by condition and judge."""

    folder: Path
    progress: dict[str, Row] = field(default_factory=dict)
    judged: dict[tuple[str, str], Row] = field(default_factory=dict)

    def of(self, condition: str) -> Row:
        """Return the counters of a condition. Raises DamagedError if it has none."""
        if condition not in self.progress:
            raise DamagedError(self.folder, "table progress", f"{condition!r:.60} has no counters")
        return self.progress[condition]

    def add(self, condition: str, judge: str, status: str, score: float, by: int = 1) -> None:
        """Count ``by`` verdicts with this score."""
        zeros = {"condition": condition, "judge": judge, **dict.fromkeys(_COUNTS, 0)}
        row = self.judged.setdefault((condition, judge), zeros)
        row["labelled"] += by * (status == "labelled")
        # Rounded, so that the sum does not depend on the order; SQLite stores a whole number as one.
        total = round(row["correct"] + by * score, 6)
        row["correct"] = int(total) if total == int(total) else total
        row["unparsed"] += by * (status == "unparsed")
        row["failed"] += by * (status == "judge-failed")
        row["undecided"] += by * (status == "undecided")


class Verdicts(Database):
    """The part of a run's store that is about judging."""

    _rows_before: dict[tuple[str, str | None], Row]

    @cached_property
    def _scores(self) -> Mapping[str, Mapping[str, float]]:
        stored = self.meta(SCORES_KEY)
        if stored is None:
            stored = {condition: dict.fromkeys(labels, 1) for condition, labels in self.meta("correct", {}).items()}
        scores: Mapping[str, Mapping[str, float]] = stored
        return scores

    @cached_property
    def counts_flags(self) -> bool:
        """True if an answer counts as every label that fits it, not as its exclusive label alone."""
        return bool(self.meta(COUNTS_FLAGS_KEY, False))

    def _score(self, condition: str, label: str | None, flags: Sequence[str]) -> float:
        """Return the highest score of the labels that an answer counts as; 0 without a label."""
        labels = (flags if self.counts_flags else ()) or (label,)
        scores = self._scores.get(condition, {})
        return max(0 if name is None else scores.get(name, 0) for name in labels)

    def unjudged(self, judge: Judge, *, after: int = -1) -> Iterator[tuple[int, Record]]:
        """Yield the answers that ``judge`` is asked for and has no verdict on, as (generation id, record).

        They come in order of generation id, from the first one greater than ``after``, and are read a page at a time. Errors are
        not judged, and an answer that is judged by a sibling's answer is skipped until that one is done.
        """
        waiting, values = _unjudged_sql(judge)
        while True:
            with self._snapshot():
                pairs = self._rows(
                    f"SELECT g.id, i.ordinal {waiting} AND g.id > ? ORDER BY g.id LIMIT {PAGE}", (*values, after)
                )
                ordinals = [ordinal for _, ordinal in pairs]
                where = f"WHERE r.ordinal IN ({', '.join('?' * len(ordinals))})"
                rows = {row[0]: row for row in self._values("instance", where, ordinals)}
                generations = self._generations({ordinal: row[1] for ordinal, row in rows.items()})
                bases = self._answers([row[5] for row in rows.values() if row[5] is not None])
            if not pairs or pairs[-1][0] <= after:
                return
            after = pairs[-1][0]
            for generation, ordinal in pairs:
                row = rows[ordinal]
                answers = tuple(generations[ordinal])
                yield generation, Record(self.instance(row), answers, basis=bases.get(row[5]))

    def unjudged_count(self, judge: Judge) -> int:
        """Return the number of answers that :meth:`unjudged` yields."""
        waiting, values = _unjudged_sql(judge)
        return self._ids(f"SELECT count(*) {waiting}", values)[0]

    def basis_of(self, ordinal: int) -> tuple[bool, Generation | None]:
        """Return whether the sibling that an instance is judged by is done, and that sibling's answer.

        Return (True, None) if it has no such sibling.
        """
        rows = self._rows(
            "SELECT b.ordinal, b.done FROM instance i JOIN instance b ON b.ordinal = i.basis WHERE i.ordinal = ?",
            (ordinal,),
        )
        if not rows:
            return True, None
        ((basis, done),) = rows
        return bool(done), self._answers([basis]).get(basis) if done else None

    def _answers(self, ordinals: Sequence[int]) -> dict[int | None, Generation]:
        """Return the answers of those of ``ordinals`` that are done."""
        if not ordinals:
            return {}
        marks = ", ".join("?" * len(ordinals))
        done = dict(self._rows(f"SELECT ordinal, id FROM instance WHERE done AND ordinal IN ({marks})", ordinals))
        return {ordinal: generations[-1] for ordinal, generations in self._generations(done).items()}

    def _verdict_rows(
        self, answers: Mapping[int, int], *, tally: dict[str, Tally] | None = None
    ) -> dict[int, list[Values]]:
        """Return the rows of verdicts by ordinal, in order of judge; ``answers`` maps the ids of accepted answers to ordinals."""
        verdicts: dict[int, list[Values]] = defaultdict(list)
        for row in self._values(
            "verdict",
            f"WHERE r.accepted AND r.generation IN ({', '.join('?' * len(answers))}) ORDER BY r.judge",
            tuple(answers),
            tally=tally,
        ):
            if row[1] not in answers:
                raise self.damaged("verdict", row, "its answer is missing")
            verdicts[answers[row[1]]].append(row)
        return verdicts

    def parse_verdicts(self, rows: Sequence[Values]) -> dict[str, Verdict]:
        """Return the verdicts of rows, by judge. Raises DamagedError."""
        verdicts = (self._parsed("verdict", row, stored_values.verdict) for row in rows)
        return {verdict.judge: verdict for verdict in verdicts}

    def answer_of(self, instance: str) -> tuple[int, str] | None:
        """Return (generation id, condition) of an instance's answer; None if it has none, or an error. Raises DamagedError."""
        for row in self._values("instance", "WHERE r.id = ? AND r.done", (instance,)):
            for answer in self._stored(
                "generation",
                "WHERE r.accepted AND r.instance = ? AND r.finish_reason != 'error' ORDER BY r.step DESC LIMIT 1",
                (row[0],),
            ):
                return answer["id"], self.instance(row).condition
        return None

    def right_sql(self, condition: str, label: str, flags: str, values: dict[str, Any]) -> str:
        """Return SQL that tests if an answer is right, from the SQL for its condition, label and flags; adds its ``values``."""
        places = []
        right = [
            (name, label) for name, scores in self._scores.items() for label, score in scores.items() if score == 1
        ]
        for number, (name, right_label) in enumerate(right):
            values[f"right_c{number}"], values[f"right_l{number}"] = name, right_label
            places.append(f"(:right_c{number}, :right_l{number})")
        if not places:
            return "0"
        test = f"IN (VALUES {', '.join(places)})"
        of_label = f"({condition}, {label}) {test}"
        if not self.counts_flags:
            return of_label
        return f"({of_label} OR EXISTS (SELECT 1 FROM json_each({flags}) f WHERE ({condition}, f.value) {test}))"

    def add_verdicts(self, verdicts: Sequence[tuple[int, str, Verdict]]) -> None:
        """Store verdicts durably: (generation id, condition, verdict).

        An earlier verdict of the same judge on the same answer is set aside. A verdict on an answer that was itself set aside
        meanwhile is stored but counts nowhere.
        """
        now = time.time()
        with self._transaction():
            (last,) = self._ids("SELECT coalesce(max(id), 0) FROM verdict")
            counters = self._counters()
            for number, (generation, condition, verdict) in enumerate(verdicts, last + 1):
                (answer,) = self._stored("generation", "WHERE r.id = ?", (generation,))
                counts = bool(answer["accepted"])
                before = self._ids(
                    "SELECT id FROM verdict WHERE accepted AND judge = ? AND generation = ?",
                    (verdict.judge, generation),
                )
                self._set_aside(dict.fromkeys(before, condition), counters, counts=counts)
                self._write("verdict", self._verdict_row(number, generation, verdict, now), counted=(True, counts))
                if counts:
                    score = self._score(condition, verdict.label, verdict.flags)
                    counters.add(condition, verdict.judge, verdict.status, score)
            self._write_counters(counters)

    def retract(self, judge: str, *, instance: str | None = None, status: str | None = None) -> int:
        """Set aside the verdicts of ``judge``, on one instance or with one status, and return their number.

        They stay in the store but no longer count.
        """
        where, values = "1", list[str]()
        if instance is not None:
            where, values = where + " AND i.id = ?", [*values, instance]
        if status is not None:
            where, values = where + " AND v.status = ?", [*values, status]
        with self._transaction():
            counters = self._counters()
            verdicts = self._rows(
                "SELECT v.id, i.condition FROM verdict v JOIN generation g ON g.id = v.generation"
                f" JOIN instance i ON i.ordinal = g.instance WHERE v.accepted AND g.accepted AND v.judge = ? AND {where}",
                (judge, *values),
            )
            self._set_aside(dict(verdicts), counters)
            self._write_counters(counters)
        return len(verdicts)

    def _set_aside(self, conditions: Mapping[int, str], counters: Counters, *, counts: bool = True) -> None:
        """Set aside verdicts, given as ids with the condition of their answer; ``counts`` tells if they counted so far."""
        ids = list(conditions)
        for start in range(0, len(ids), PAGE):
            page = ids[start : start + PAGE]
            for row in self._stored("verdict", f"WHERE r.id IN ({', '.join('?' * len(page))})", page):
                self._write("verdict", {**row, "accepted": 0}, row, counted=(counts, False))
                condition = conditions[row["id"]]
                if counts:
                    score = self._score(condition, row["label"], stored_values.flags_of(row["flags"]))
                    counters.add(condition, row["judge"], row["status"], score, -1)

    def judge_usage(self, judge: str) -> tuple[int, int, int]:
        """Return the calls, prompt tokens and completion tokens of ``judge``, including verdicts set aside."""
        sums = "coalesce(sum(calls), 0), coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0)"
        ((calls, prompt, completion),) = self._rows(f"SELECT {sums} FROM verdict WHERE judge = ?", (judge,))
        return calls, prompt, completion

    def _verdict_row(self, number: int, generation: int, verdict: Verdict, now: float) -> Row:
        return {
            "id": number,
            "generation": generation,
            "judge": verdict.judge,
            "accepted": 1,
            "status": verdict.status,
            "label": verdict.label,
            "reason": storable(verdict.reason),
            "raw": None if verdict.raw is None else storable(verdict.raw),
            "flags": storable(canonical_json(verdict.flags)),
            "calls": verdict.calls,
            "prompt_tokens": verdict.prompt_tokens,
            "completion_tokens": verdict.completion_tokens,
            "judged_at": now,
            "behaviour": verdict.behaviour,
        }

    # --- counters --------------------------------------------------------------------------------

    def _counters(self) -> Counters:
        """Read the counters in this transaction, to be changed and passed to :meth:`_write_counters`."""
        counters = Counters(self.folder)
        self._rows_before = {}
        for row in self._whole("progress"):
            counters.progress[row["condition"]] = self._parsed("progress", row, stored_values.counts)
            self._rows_before[row["condition"], None] = row
        for row in self._whole("judged"):
            counters.judged[row["condition"], row["judge"]] = self._parsed("judged", row, stored_values.counts)
            self._rows_before[row["condition"], row["judge"]] = row
        return counters

    def _write_counters(self, counters: Counters) -> None:
        before = self._rows_before
        for condition, row in counters.progress.items():
            if row != stored_values.counts(before[condition, None]):
                self._write("progress", row, before[condition, None])
        for condition, judge in {*counters.judged, *((key[0], key[1]) for key in before if key[1] is not None)}:
            current, previous = counters.judged.get((condition, judge)), before.get((condition, judge))
            if current is not None and any(current[count] for count in _COUNTS):
                if previous is None or current != stored_values.counts(previous):
                    self._write("judged", current, previous)
            elif previous is not None:  # no verdict of this judge counts any more
                self._remove("judged", previous)


def _unjudged_sql(judge: Judge) -> tuple[str, tuple[str, ...]]:
    """Return the rest of a query for the answers g of instances i that ``judge`` has still to label, with its values."""
    restriction, values = "", (judge.id, *judge.conditions)
    if judge.conditions:
        restriction = f" AND i.condition IN ({', '.join('?' * len(judge.conditions))})"
    if judge.undecided_by:
        values = (*values, judge.undecided_by)
        restriction += (
            " AND EXISTS (SELECT 1 FROM verdict u WHERE u.generation = g.id AND u.judge = ? AND u.accepted"
            " AND u.status = 'undecided')"
        )
    return (
        "FROM generation g JOIN instance i ON i.ordinal = g.instance"
        " WHERE g.accepted AND i.done AND g.finish_reason != 'error'"
        " AND (i.basis IS NULL OR (SELECT b.done FROM instance b WHERE b.ordinal = i.basis))"
        " AND g.step = (SELECT max(step) FROM generation WHERE instance = g.instance AND accepted)"
        " AND NOT EXISTS (SELECT 1 FROM verdict v WHERE v.generation = g.id AND v.judge = ? AND v.accepted)"
        f"{restriction}",
        values,
    )
