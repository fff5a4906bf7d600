"""RunStore: the one module that owns a run's SQL.

A run is a folder: ``run.sqlite`` (the truth), ``spec.toml`` (what was asked, for people) and ``lock``. An answer is
durable when :meth:`RunStore.commit` returns; the progress counters are kept in the same transaction.
"""

from __future__ import annotations

import json
import sqlite3
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from app.store.failure import explained
from app.store.rows import Answer, Judged, Pending, Progress
from app.store.schema import MIGRATIONS, migrate, schema_version
from benchmarks.base import (
    Generation,
    Instance,
    Record,
    Verdict,
    canonical_json,
    instance_from_json,
    instance_to_json,
)
from benchmarks.errors import StoreError

DATABASE = "run.sqlite"
_PAGE = 256
_FIGURES = ("condition", "total", "done", "errors", "truncated", "tokens", "seconds", "peak_memory")


class RunStore:
    """One run's database. Open it through :meth:`create`, :meth:`open` or :meth:`read`."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._db = connection
        self._engine_id: int | None = None

    # --- opening ---------------------------------------------------------------------------------

    @classmethod
    def create(cls, folder: Path, meta: Mapping[str, Any], instances: Iterable[Instance]) -> Self:
        """A new run in ``folder``, which is there and empty, planned whole in one transaction.

        Raises StoreFullError, and StoreError where the folder cannot be written.
        """
        store = cls._connect(folder)
        with store._transaction():
            for key, value in meta.items():
                store._db.execute("INSERT INTO meta VALUES (?, ?)", (key, _storable(canonical_json(value))))
            totals: dict[str, int] = defaultdict(int)
            for ordinal, instance in enumerate(instances):
                totals[instance.condition] += 1
                body = _storable(canonical_json(instance_to_json(instance)))
                row = (ordinal, _storable(instance.id), instance.condition, body)
                store._db.execute("INSERT INTO instance (ordinal, id, condition, body) VALUES (?, ?, ?, ?)", row)
            store._db.executemany("INSERT INTO progress (condition, total) VALUES (?, ?)", totals.items())
        return store

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The run in ``folder``, to be written; brings its schema up to date. Raises StoreError."""
        _must_exist(folder)
        return cls._connect(folder)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The run in ``folder``, read only, also from a folder that cannot be written. Raises StoreError."""
        path = _must_exist(folder)
        with explained(path):
            try:
                connection = _read_only(path, "mode=ro")
            except sqlite3.OperationalError:
                # In a folder that cannot be written a database in WAL mode opens only as immutable, which leaves its
                # log unread: right if that is empty.
                if _size(path.with_name(path.name + "-wal")):
                    raise
                connection = _read_only(path, "immutable=1")
            version = schema_version(connection)
        if 0 < version < len(MIGRATIONS):
            connection.close()
            cls.open(folder).close()
            return cls.read(folder)
        if version == 0:
            raise StoreError(f"{folder} was never planned to the end; remove it and start its run again.")
        return cls(folder, connection)

    @classmethod
    def _connect(cls, folder: Path) -> Self:
        with explained(folder / DATABASE):
            connection = sqlite3.connect(folder / DATABASE, isolation_level=None, timeout=30)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            # On macOS fsync leaves data in the drive's cache; F_FULLFSYNC does not. Elsewhere this does nothing.
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA checkpoint_fullfsync = ON")
            connection.execute("PRAGMA foreign_keys = ON")
            migrate(connection)
        return cls(folder, connection)

    def close(self) -> None:
        """Close the database. Unless somebody is reading it, it becomes the one file ``run.sqlite``.

        Out of WAL mode it can be copied as one file and read from a folder that cannot be written.
        """
        with suppress(sqlite3.OperationalError):  # a reader, a read-only connection, or a full disk: it stays as it is
            self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with explained(self.folder / DATABASE):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with explained(self.folder / DATABASE):
            return self._db.execute(sql, values).fetchall()

    # --- what the run is -------------------------------------------------------------------------

    def meta(self, key: str, default: Any = None) -> Any:
        """A value kept with the run, as JSON: "spec", "identity", "data", "created" ..."""
        rows = self._rows("SELECT value FROM meta WHERE key = ?", (key,))
        return json.loads(rows[0][0]) if rows else default

    def set_meta(self, key: str, value: Any) -> None:
        """Keep a JSON value with the run."""
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, _storable(canonical_json(value))))

    def change_meta(self, key: str, change: Callable[[Any], Any]) -> None:
        """Replace a value by what ``change`` makes of it (of None where there is none), in one transaction."""
        with self._transaction():
            rows = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchall()
            value = change(json.loads(rows[0][0]) if rows else None)
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, _storable(canonical_json(value))))

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

    # --- answering -------------------------------------------------------------------------------

    def pending(self, conditions: Sequence[str] = ()) -> Iterator[Pending]:
        """The instances that are not done, in order, a page in memory at a time."""
        last, wanted = -1, ""
        if conditions:
            wanted = f" AND condition IN ({', '.join('?' * len(conditions))})"
        while True:
            rows = self._rows(
                f"SELECT ordinal, body FROM instance WHERE NOT done AND ordinal > ?{wanted} ORDER BY ordinal LIMIT {_PAGE}",
                (last, *conditions),
            )
            if not rows:
                return
            first, last = rows[0][0], rows[-1][0]
            earlier = self._generations("instance BETWEEN ? AND ?", (first, last))
            for ordinal, body in rows:
                yield Pending(ordinal, instance_from_json(json.loads(body)), tuple(earlier.get(ordinal, ())))

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
                    " completion_tokens, prefill_s, decode_s, peak_memory, error, calls, engine, finished_at)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        answer.ordinal,
                        answer.step,
                        answer.request_digest,
                        _storable(generation.text),
                        generation.finish_reason,
                        array("I", generation.tokens).tobytes(),
                        generation.prompt_tokens,
                        generation.completion_tokens,
                        generation.prefill_s,
                        generation.decode_s,
                        generation.peak_memory,
                        None if generation.error is None else _storable(generation.error),
                        generation.calls,
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

    def _add_verdict(self, generation: int | None, condition: str, verdict: Verdict, correct: bool, now: float) -> None:
        self._db.execute(
            "INSERT INTO verdict (generation, judge, status, label, reason, raw, flags, calls, prompt_tokens,"
            " completion_tokens, judged_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                generation,
                verdict.judge,
                verdict.status,
                verdict.label,
                _storable(verdict.reason),
                None if verdict.raw is None else _storable(verdict.raw),
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

    # --- judging ---------------------------------------------------------------------------------

    def unjudged(self, judge: str, conditions: Sequence[str] = (), *, after: int = -1) -> Iterator[tuple[int, Record]]:
        """The answers of ``conditions`` (all if empty) without a verdict of ``judge``: (generation id, record).

        In order of generation id, from the first one greater than ``after``; a page in memory at a time. An answer that
        is an error is not judged.
        """
        wanted = f" AND i.condition IN ({', '.join('?' * len(conditions))})" if conditions else ""
        while True:
            rows = self._rows(
                "SELECT g.id, i.ordinal, i.body FROM generation g JOIN instance i ON i.ordinal = g.instance"
                " WHERE g.accepted AND i.done AND g.finish_reason != 'error' AND g.id > ?"
                " AND g.step = (SELECT max(step) FROM generation WHERE instance = g.instance AND accepted)"
                " AND NOT EXISTS (SELECT 1 FROM verdict v WHERE v.generation = g.id AND v.judge = ? AND v.accepted)"
                f"{wanted} ORDER BY g.id LIMIT {_PAGE}",
                (after, judge, *conditions),
            )
            if not rows:
                return
            after = rows[-1][0]
            marks = ", ".join("?" * len(rows))
            generations = self._generations(f"instance IN ({marks})", [row[1] for row in rows])
            for generation, ordinal, body in rows:
                yield generation, Record(instance_from_json(json.loads(body)), tuple(generations[ordinal]))

    def answer_of(self, instance: str) -> tuple[int, str] | None:
        """(generation id, condition) of an instance's answer, if it has one that is no error."""
        rows = self._rows(
            "SELECT g.id, i.condition FROM generation g JOIN instance i ON i.ordinal = g.instance WHERE i.id = ?"
            " AND g.accepted AND i.done AND g.finish_reason != 'error' ORDER BY g.step DESC LIMIT 1",
            (instance,),
        )
        return (rows[0][0], rows[0][1]) if rows else None

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

    def kept_replies(self) -> int:
        """How many answers cost no call, because the reply to an equal request had been kept."""
        ((count,),) = self._rows("SELECT count(*) FROM generation WHERE accepted AND calls = 0")
        return int(count)

    def answer_usage(self) -> tuple[int, int, int]:
        """What answering has used in this run, answers set aside included: calls, prompt tokens, completion tokens."""
        sums = "coalesce(sum(calls), 0), coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0)"
        ((calls, prompt, completion),) = self._rows(f"SELECT {sums} FROM generation")
        return calls, prompt, completion

    # --- doing again -----------------------------------------------------------------------------

    def repeat(self, conditions: Sequence[str] = (), *, errors_only: bool = False) -> int:
        """Set the answers of ``conditions`` (all if empty) aside, kept but not accepted, to be asked again.

        With ``errors_only`` only those that failed. Returns how many instances are to be asked again.
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

    def records(self, *, only: str | None = None) -> Iterator[Record]:
        """Every instance with its accepted generations and their verdicts, in order; ``only`` one instance id."""
        where, values = ("id = ?", (only,)) if only is not None else ("1", ())
        last = -1
        while True:
            rows = self._rows(
                f"SELECT ordinal, body FROM instance WHERE {where} AND ordinal > ? ORDER BY ordinal LIMIT {_PAGE}",
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
            for ordinal, body in rows:
                instance = instance_from_json(json.loads(body))
                yield Record(instance, tuple(generations.get(ordinal, ())), verdicts.get(ordinal, {}))

    def engines(self) -> list[dict[str, Any]]:
        """Every engine that answered in this run."""
        return [json.loads(info) for (info,) in self._rows("SELECT info FROM engine ORDER BY id")]

    def _generations(self, where: str, values: Sequence[Any]) -> dict[int, list[Generation]]:
        found: dict[int, list[Generation]] = defaultdict(list)
        for ordinal, instance_id, step, tokens, *rest in self._rows(
            "SELECT g.instance, i.id, g.step, g.tokens, g.text, g.finish_reason, g.prompt_tokens, g.completion_tokens,"
            " g.prefill_s, g.decode_s, g.peak_memory, g.error, g.calls"
            " FROM generation g JOIN instance i ON i.ordinal = g.instance"
            f" WHERE g.accepted AND g.{where} ORDER BY g.instance, g.step",
            values,
        ):
            numbers = array("I")
            numbers.frombytes(tokens)
            text, finish_reason, *figures = rest
            found[ordinal].append(Generation(f"{instance_id}#{step}", text, finish_reason, tuple(numbers), *figures))
        return found


def _must_exist(folder: Path) -> Path:
    path = folder / DATABASE
    if not path.is_file():
        raise StoreError(f"{folder} is not a run: it has no {DATABASE}; `rashomon runs` lists the runs there are.")
    return path


def _read_only(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None, timeout=5)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _storable(text: str) -> str:
    # SQLite stores UTF-8; a lone surrogate has none and becomes its visible escape.
    return text.encode("utf-8", "backslashreplace").decode()
