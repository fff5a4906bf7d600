"""Schema of the run database, as migrations: number N updates a database from version N-1 to N, in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import cache

from app.store.integrity.row_digests import COLUMNS, WRITE_DIGESTS, register_functions
from benchmarks.errors import StoreError

NO_DIGESTS = 6
"""The last version whose rows carry no digests. It is read without a migration."""

LATER_COLUMNS: Mapping[int, Mapping[str, str]] = {
    8: {"undecided": "0", "behaviour": "NULL"},
    9: {"origin": "NULL", "reused": "0"},
}
"""The columns that each version after :data:`NO_DIGESTS` added, with the value that earlier rows have in them."""

UNDIGESTED = "digests since"
"""The meta key, in a run of an earlier version, of the number of answers it had when digests were computed."""

LIST_SAMPLES = r"""
    INSERT INTO sample SELECT ordinal, id, json_extract(text, '$.group'), condition, json_extract(text, '$.question'),
     json_extract(text, '$.strata') FROM (SELECT *, replace(body, '\u0000', '\ufffd') AS text FROM instance)
"""
"""The statement that fills the table ``sample`` from ``instance``. SQLite would cut a text of JSON at its first NUL."""


def _without_later_columns(statements: str) -> str:
    """Return the statements that digest rows for a version without :data:`LATER_COLUMNS`."""
    for columns in LATER_COLUMNS.values():
        for column, value in columns.items():
            statements = statements.replace(f", {column})", f", {value})")
    return statements


MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE instance (
        ordinal INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        condition TEXT NOT NULL,
        body TEXT NOT NULL,
        done INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX pending_instance ON instance (ordinal) WHERE NOT done;
    CREATE TABLE engine (id INTEGER PRIMARY KEY, info TEXT NOT NULL UNIQUE);
    CREATE TABLE generation (
        id INTEGER PRIMARY KEY,
        instance INTEGER NOT NULL REFERENCES instance (ordinal),
        step INTEGER NOT NULL,
        accepted INTEGER NOT NULL DEFAULT 1,
        request TEXT NOT NULL,
        text TEXT NOT NULL,
        finish_reason TEXT NOT NULL,
        tokens BLOB NOT NULL,
        prompt_tokens INTEGER,
        completion_tokens INTEGER,
        prefill_s REAL,
        decode_s REAL,
        peak_memory INTEGER,
        error TEXT,
        engine INTEGER NOT NULL REFERENCES engine (id),
        finished_at REAL NOT NULL
    );
    CREATE UNIQUE INDEX accepted_generation ON generation (instance, step) WHERE accepted;
    CREATE TABLE verdict (
        generation INTEGER NOT NULL REFERENCES generation (id),
        judge TEXT NOT NULL,
        status TEXT NOT NULL,
        label TEXT,
        reason TEXT NOT NULL,
        raw TEXT,
        judged_at REAL NOT NULL,
        PRIMARY KEY (generation, judge)
    ) WITHOUT ROWID;
    CREATE TABLE progress (
        condition TEXT PRIMARY KEY,
        total INTEGER NOT NULL,
        done INTEGER NOT NULL DEFAULT 0,
        errors INTEGER NOT NULL DEFAULT 0,
        truncated INTEGER NOT NULL DEFAULT 0,
        tokens INTEGER NOT NULL DEFAULT 0,
        seconds REAL NOT NULL DEFAULT 0,
        peak_memory INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE judged (
        condition TEXT NOT NULL,
        judge TEXT NOT NULL,
        labelled INTEGER NOT NULL DEFAULT 0,
        correct INTEGER NOT NULL DEFAULT 0,
        unparsed INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (condition, judge)
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE generation ADD COLUMN calls INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE verdict RENAME TO verdict_before;
    CREATE TABLE verdict (
        id INTEGER PRIMARY KEY,
        generation INTEGER NOT NULL REFERENCES generation (id),
        judge TEXT NOT NULL,
        accepted INTEGER NOT NULL DEFAULT 1,
        status TEXT NOT NULL,
        label TEXT,
        reason TEXT NOT NULL,
        raw TEXT,
        flags TEXT NOT NULL DEFAULT '[]',
        calls INTEGER NOT NULL DEFAULT 0,
        prompt_tokens INTEGER NOT NULL DEFAULT 0,
        completion_tokens INTEGER NOT NULL DEFAULT 0,
        judged_at REAL NOT NULL
    );
    INSERT INTO verdict (generation, judge, status, label, reason, raw, judged_at)
        SELECT generation, judge, status, label, reason, raw, judged_at FROM verdict_before;
    DROP TABLE verdict_before;
    CREATE UNIQUE INDEX accepted_verdict ON verdict (generation, judge) WHERE accepted;
    """,
    """
    ALTER TABLE instance ADD COLUMN basis INTEGER REFERENCES instance (ordinal);
    CREATE INDEX instance_by_basis ON instance (basis) WHERE basis IS NOT NULL
    """,
    """
    ALTER TABLE generation ADD COLUMN active_memory INTEGER;
    ALTER TABLE generation ADD COLUMN cache_memory INTEGER;
    """,
    # The columns that samples are filtered by, without the prompts, which can take hundreds of megabytes.
    f"""
    CREATE TABLE sample (
        ordinal INTEGER PRIMARY KEY REFERENCES instance (ordinal),
        id TEXT NOT NULL,
        "group" TEXT NOT NULL,
        condition TEXT NOT NULL,
        question TEXT NOT NULL,
        strata TEXT NOT NULL
    );
    {LIST_SAMPLES};
    CREATE INDEX sample_by_group ON sample ("group");
    CREATE INDEX accepted_end ON generation (instance, step, finish_reason, accepted) WHERE accepted;
    CREATE INDEX accepted_label ON verdict (generation, judge, status, label, accepted) WHERE accepted
    """,
    "ALTER TABLE generation ADD COLUMN scores TEXT",
    # Digests reveal damage when a row is read. Existing rows get theirs now.
    ";\n".join(
        [
            *(f"ALTER TABLE {table} ADD COLUMN digest BLOB" for table in COLUMNS),
            "CREATE TABLE tally (name TEXT PRIMARY KEY, rows INTEGER NOT NULL, total INTEGER NOT NULL) WITHOUT ROWID",
            f"INSERT INTO meta (key, value) SELECT '{UNDIGESTED}', (SELECT count(*) FROM generation)"
            " WHERE EXISTS (SELECT 1 FROM meta)",
            _without_later_columns(WRITE_DIGESTS),
        ]
    ),
    """
    ALTER TABLE judged ADD COLUMN undecided INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE verdict ADD COLUMN behaviour TEXT
    """,
    """
    ALTER TABLE generation ADD COLUMN origin TEXT;
    ALTER TABLE progress ADD COLUMN reused INTEGER NOT NULL DEFAULT 0
    """,
)


def migrate(connection: sqlite3.Connection, to: int | None = None) -> None:
    """Update a database to version ``to``, by default the newest; each step is atomic.

    Raises StoreError for a database that a newer Rashomon wrote.
    """
    target = len(MIGRATIONS) if to is None else to
    while schema_version(connection) < target:
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = schema_version(connection)  # another process may have done it meanwhile
            if version < target:
                _take_step(connection, MIGRATIONS[version])
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _take_step(connection: sqlite3.Connection, migration: str) -> None:
    register_functions(connection)
    for statement in migration.split(";\n"):
        connection.execute(statement)


def is_readable(version: int) -> bool:
    """Return whether a database of this version is read as it is: it has all tables, and lacks :data:`LATER_COLUMNS` at most."""
    later = range(max(version, NO_DIGESTS + 1) + 1, len(MIGRATIONS) + 1)
    return version >= NO_DIGESTS and all(step in LATER_COLUMNS for step in later)


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the version of a database. Raises StoreError for one that a newer Rashomon wrote."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise StoreError(f"this run was written by a newer Rashomon (schema {version}); update Rashomon to read it.")
    if version < 0:
        raise StoreError(f"this run's database has the invalid schema version {version}; restore it from a copy.")
    return version


def foreign_objects(connection: sqlite3.Connection) -> list[str]:
    """Return the tables, indexes, views and triggers that are missing, extra or different from this version's schema.

    Only the schema is read, so that no view or trigger of a received database is ever used.
    """
    expected = _expected(MIGRATIONS[: schema_version(connection)])
    return sorted({f"{kind} {name}" for kind, name, *_ in _objects(connection) ^ expected})


@cache
def _expected(migrations: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    connection = sqlite3.connect(":memory:")
    try:
        for migration in migrations:
            _take_step(connection, migration)
        return _objects(connection)
    finally:
        connection.close()


def _objects(connection: sqlite3.Connection) -> frozenset[tuple[str, ...]]:
    rows = connection.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema").fetchall()
    return frozenset((str(kind), str(name), str(table), "".join(str(sql).split())) for kind, name, table, sql in rows)
