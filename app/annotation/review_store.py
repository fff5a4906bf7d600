"""Database of a review: the rows under review, the reviewers, and every decision, bound to one state of one build."""

from __future__ import annotations

import getpass
import json
import platform
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from app.store.file_locks import FileLock
from app.store.sqlite_errors import translate_errors
from benchmarks.errors import BusyError, NoAccessError, SpecError, StoreError
from benchmarks.untrusted.file_names import name_key
from benchmarks.untrusted.safe_files import check_database, make_folder
from benchmarks.vocabulary import canonical_json
from judges.human_labels_and_samples import annotator_id

DATABASE = "review.sqlite"
CHOICES = ("accept", "reject", "fix")
Choice = Literal["accept", "reject", "fix"]

_VERSION = 1
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE item (position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, row TEXT NOT NULL);
CREATE TABLE reviewer (folded TEXT PRIMARY KEY, name TEXT NOT NULL, account TEXT NOT NULL, created REAL NOT NULL);
CREATE TABLE decision (
    number INTEGER PRIMARY KEY, item TEXT NOT NULL REFERENCES item (id), reviewer TEXT NOT NULL,
    adjudication INTEGER NOT NULL, choice TEXT NOT NULL, reason TEXT NOT NULL, corrections TEXT NOT NULL,
    grade TEXT NOT NULL, seconds REAL, made REAL NOT NULL, replaced INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX one_review ON decision (item, reviewer) WHERE NOT replaced AND NOT adjudication;
CREATE UNIQUE INDEX one_adjudication ON decision (item) WHERE NOT replaced AND adjudication;
"""


class ReviewChangedError(StoreError):
    """A review of a build that has changed since the review began."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's decision on a row.

    ``corrections`` are the corrected texts by place, of the choice "fix" only. ``grade`` is the difficulty level that the
    person assigns, "" for none. ``seconds`` is the time from the display of the row to the decision, None if unknown. An
    adjudication decides between reviewers who disagree.
    """

    item: str
    reviewer: str
    choice: Choice
    reason: str = ""
    corrections: Mapping[str, str] = field(default_factory=dict)
    grade: str = ""
    seconds: float | None = None
    adjudication: bool = False

    @property
    def content(self) -> tuple[object, ...]:
        """The choice and the corrections: two decisions with equal contents agree."""
        return self.choice, tuple(sorted(self.corrections.items()))


class ReviewStore:
    """A review's database. Every decision is one transaction; a decision that is replaced or undone stays, set aside.

    Use :meth:`begin` or :meth:`open` as a context manager, within one thread.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self._db = connection

    @classmethod
    def begin(cls, folder: Path, facts: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> Self:
        """Create the review in ``folder`` with ``facts``, which hold the build's digest, and the rows to review.

        All of it is written or nothing. Raises StoreError if there is a review already or the folder cannot be written,
        SpecError without rows.
        """
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            make_folder(folder.parent, folder.name)
        except OSError as error:
            raise NoAccessError(f"cannot write {folder}: {error.strerror}; name another --workspace.") from error
        store = cls._connect(folder)
        try:
            with store._transaction():
                if store._version():
                    raise StoreError(f"{folder} holds a review already; open it, or choose another --name.")
                for statement in _SCHEMA.split(";"):
                    store._db.execute(statement)
                store._db.executemany(
                    "INSERT INTO meta VALUES (?, ?)", [(key, canonical_json(value)) for key, value in facts.items()]
                )
                pairs = ((str(row["id"]), json.dumps(row)) for row in rows)
                store._db.executemany("INSERT INTO item (id, row) VALUES (?, ?)", pairs)
                if not len(store):
                    raise SpecError("no row of the build is selected for review; widen --share.")
                store._db.execute(f"PRAGMA user_version = {_VERSION}")
            return store
        except BaseException:
            store.close()
            raise

    @classmethod
    def open(cls, folder: Path, digest: str | None = None) -> Self:
        """Open the review in ``folder``.

        Raises StoreError if there is none, and ReviewChangedError unless ``digest`` is that of the reviewed build; None skips
        this check.
        """
        if not cls.exists(folder):
            raise StoreError(f"there is no review in {folder}; begin one with `rashomon review BUILD`.")
        store = cls._connect(folder)
        try:
            if store._version() != _VERSION:
                raise StoreError(f"{folder} holds no review of this version of Rashomon; choose another --name.")
            if digest is not None and store.meta("build digest") != digest:
                raise ReviewChangedError(
                    f"{store.meta('build')} has changed since the review {folder.name} began (digest "
                    f"{store.meta('build digest')[:12]}, now {digest[:12]}); restore that build, or begin another review with "
                    "--name. The decisions so far are kept."
                )
            return store
        except BaseException:
            store.close()
            raise

    @classmethod
    def exists(cls, folder: Path) -> bool:
        """Return whether the folder holds a review that was begun completely."""
        if not folder.is_dir() or not check_database(folder, DATABASE, write=False):
            return False
        with cls._connect(folder) as store:
            return store._version() > 0

    @classmethod
    def _connect(cls, folder: Path) -> Self:
        check_database(folder, DATABASE, write=True)
        with translate_errors(folder / DATABASE):
            connection = sqlite3.connect(folder / DATABASE, isolation_level=None, timeout=30)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")
            return cls(folder, connection)

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return int(self._rows("SELECT count(*) FROM item")[0][0])

    def meta(self, key: str) -> Any:
        """Return a fact that the review began with. Raises StoreError if it is missing."""
        rows = self._rows("SELECT value FROM meta WHERE key = ?", (key,))
        if not rows:
            raise StoreError(f"{self.folder / DATABASE} lacks {key!r}; restore it from a copy.")
        return json.loads(rows[0][0])

    # --- rows ------------------------------------------------------------------------------------

    def ids(self) -> list[str]:
        """Return the ids of all rows under review, in the order of display."""
        return [row[0] for row in self._rows("SELECT id FROM item ORDER BY position")]

    def row(self, item: str) -> dict[str, Any]:
        """Return a row of the build, as it was when the review began."""
        ((text,),) = self._rows("SELECT row FROM item WHERE id = ?", (item,))
        row: dict[str, Any] = json.loads(text)
        return row

    # --- reviewers -------------------------------------------------------------------------------

    def reviewers(self) -> list[str]:
        """Return the names of all reviewers and adjudicators, oldest first."""
        return [row[0] for row in self._rows("SELECT name FROM reviewer ORDER BY created, name")]

    def enrol(self, name: str, *, same_person: bool = False, account: str | None = None) -> str:
        """Enrol a reviewer, or recognise one by name and account; return the time of enrolment in words, "" if it is now.

        Names are compared without case. Raises SpecError for an invalid name, and for one that another account uses, unless
        ``same_person``.
        """
        annotator_id(name)
        account = account_name() if account is None else account
        with self._transaction():
            rows = self._db.execute("SELECT name, account, created FROM reviewer WHERE folded = ?", (name_key(name),))
            known = rows.fetchone()
            if known is None:
                self._db.execute(
                    "INSERT INTO reviewer VALUES (?, ?, ?, ?)", (name_key(name), name, account, time.time())
                )
                return ""
            if known[0] != name:
                raise SpecError(f"the name {name} differs from the reviewer {known[0]} only in case; use another name.")
            if known[1] != account and not same_person:
                raise SpecError(
                    f"the name {name} belongs to a reviewer on another account, {known[1]}; use another name, or add "
                    "--same-person if it is you."
                )
            return time.strftime("%Y-%m-%d %H:%M", time.localtime(known[2]))

    @contextmanager
    def session(self, name: str) -> Iterator[None]:
        """Hold the name of a reviewer for a session. Raises StoreError if another session has it."""
        lock = session_lock(self.folder, name)
        try:
            yield
        finally:
            lock.release()

    # --- decisions -------------------------------------------------------------------------------

    def decide(self, *decisions: Decision) -> None:
        """Store decisions, all or none, in place of the same person's earlier ones on these rows."""
        with self._transaction():
            for decision in decisions:
                self._set_aside(decision.item, decision.reviewer, decision.adjudication)
                self._db.execute(
                    "INSERT INTO decision (item, reviewer, adjudication, choice, reason, corrections, grade, seconds, made) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        decision.item,
                        decision.reviewer,
                        decision.adjudication,
                        decision.choice,
                        decision.reason,
                        canonical_json(dict(decision.corrections)),
                        decision.grade,
                        decision.seconds,
                        time.time(),
                    ),
                )

    def undo(self, reviewer: str, *, adjudication: bool = False) -> str | None:
        """Set a person's last decision aside; return its row's id, None if there is none."""
        with self._transaction():
            last = self._db.execute(
                "SELECT number, item FROM decision WHERE reviewer = ? AND adjudication = ? AND NOT replaced "
                "ORDER BY number DESC LIMIT 1",
                (reviewer, adjudication),
            ).fetchone()
            if last is None:
                return None
            self._db.execute("UPDATE decision SET replaced = 1 WHERE number = ?", (last[0],))
            return str(last[1])

    def _set_aside(self, item: str, reviewer: str, adjudication: bool) -> None:
        whose, values = (" AND reviewer = ?", (item, reviewer)) if not adjudication else ("", (item,))
        self._db.execute(
            f"UPDATE decision SET replaced = 1 WHERE item = ?{whose} AND adjudication = {int(adjudication)} AND NOT replaced",
            values,
        )

    def decisions(self, reviewer: str | None = None, *, adjudication: bool | None = None) -> list[Decision]:
        """Return the decisions in force, in the order of the rows: those of one person, and of one kind, or all."""
        rest, values = "", []
        if reviewer is not None:
            rest, values = " AND d.reviewer = ?", [reviewer]
        if adjudication is not None:
            rest += f" AND d.adjudication = {int(adjudication)}"
        rows = self._rows(
            "SELECT d.item, d.reviewer, d.choice, d.reason, d.corrections, d.grade, d.seconds, d.adjudication FROM decision d "
            f"JOIN item i ON i.id = d.item WHERE NOT d.replaced{rest} ORDER BY i.position, d.adjudication, d.number",
            values,
        )
        return [
            Decision(item, name, choice, reason, json.loads(corrections), grade, seconds, bool(adjudicates))
            for item, name, choice, reason, corrections, grade, seconds, adjudicates in rows
        ]

    # --- SQL -------------------------------------------------------------------------------------

    def _version(self) -> int:
        return int(self._rows("PRAGMA user_version")[0][0])

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with translate_errors(self.folder / DATABASE):
            return self._db.execute(sql, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with translate_errors(self.folder / DATABASE):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise


def session_lock(folder: Path, name: str) -> FileLock:
    """Return the acquired lock of a reviewer's session. Raises StoreError if another session has it."""
    lock = FileLock(folder / f"session-{name_key(name)}.lock")
    if not lock.acquire(f"{name}'s session"):
        raise BusyError(
            f"{name} is reviewing in another session; end that one, or use another name if you are another person."
        )
    return lock


def account_name() -> str:
    """Return the name of the system's user and of the machine, as in ``ann@studio``."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "unknown"
    return f"{user}@{platform.node() or 'unknown'}"
