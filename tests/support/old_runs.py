"""Runs as earlier versions of the schema have them, and changes to a run's rows that leave its digests as they should be."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.store import database_schema
from app.store.integrity.row_digests import WRITE_DIGESTS, register_functions
from app.store.run_database import DATABASE


@contextmanager
def sealed(folder: Path) -> Iterator[sqlite3.Connection]:
    """A run's database, to be changed as its author could; digests and tallies are made anew at the end."""
    connection = sqlite3.connect(folder / DATABASE)
    try:
        register_functions(connection)
        yield connection
        for statement in WRITE_DIGESTS.split(";\n"):
            connection.execute(statement)
        connection.commit()
    finally:
        connection.close()


def as_version(folder: Path, version: int) -> None:
    """Make a run one of an earlier version of the schema, with the same rows as far as that version has their columns."""
    new, old = folder / DATABASE, folder / "older.sqlite"
    connection = sqlite3.connect(old, isolation_level=None)
    try:
        register_functions(connection)
        for migration in database_schema.MIGRATIONS[:version]:
            for statement in migration.split(";\n"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("ATTACH ? AS newer", (str(new),))
        tables = connection.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'").fetchall()
        for (table,) in tables:
            columns = [row[1] for row in connection.execute(f"PRAGMA main.table_info({table})")]
            newer = {row[1] for row in connection.execute(f"PRAGMA newer.table_info({table})")}
            names = ", ".join(f'"{column}"' for column in columns if column in newer)
            connection.execute(f"DELETE FROM main.{table}")
            connection.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM newer.{table}")
        connection.execute("DETACH newer")
    finally:
        connection.close()
    old.replace(new)
