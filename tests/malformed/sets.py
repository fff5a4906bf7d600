"""Malformed question sets, builds and runs: edited, truncated, swapped, and databases that are none."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.malformed.case import SEED, Case, Make, cases
from tests.malformed.home import BATCH

_SET = "workspace/sets/rows"
_BUILD = f"{_SET}/1"
_RUN = "workspace/runs/asked"
_MEGABYTE = 1 << 20

Change = Callable[[Path], object]


def _json(name: str, change: Callable[[Any], Any]) -> Change:
    """Return a function that replaces a JSON file by what ``change`` makes of its value, or by the bytes that it returns."""

    def apply(home: Path) -> None:
        path = home / name
        path.chmod(0o644)
        value = change(json.loads(path.read_text()))
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())

    return apply


def _bytes(name: str, change: Callable[[bytes], bytes]) -> Change:
    def apply(home: Path) -> None:
        path = home / name
        path.chmod(0o644)
        path.write_bytes(change(path.read_bytes()))

    return apply


def _instead(name: str, put: Callable[[Path], object]) -> Change:
    """Return a function that puts something else in the place of a file or a folder."""

    def apply(home: Path) -> None:
        path = home / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        put(path)

    return apply


def _sql(*statements: str) -> Change:
    def apply(home: Path) -> None:
        with sqlite3.connect(home / _RUN / "run.sqlite", isolation_level=None) as database:
            for statement in statements:
                database.execute(statement)
        database.close()

    return apply


def _flip(data: bytes) -> bytes:
    """Flip a bit of every text about kale."""
    return data.replace(b"kale", b"kald")


_MANIFEST, _ROWS, _LIST = f"{_BUILD}/manifest.json", f"{_BUILD}/instances.jsonl", f"{_SET}/set.json"
_DATABASE = f"{_RUN}/run.sqlite"
_DEEP = b"[" * 100_000 + b"]" * 100_000


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _hard_link(home: Path) -> None:
    outside = home / "outside.sqlite"
    shutil.move(home / _DATABASE, outside)
    os.link(outside, home / _DATABASE)


def _wal(home: Path) -> None:
    (home / f"{_DATABASE}-wal").write_bytes(random.Random(SEED).randbytes(200_000))


def _first_medium(home: Path) -> Path:
    return sorted((home / _BUILD / "media").iterdir())[0]


def _swap_media(home: Path) -> None:
    first, second, *_ = sorted((home / _BUILD / "media").iterdir())
    for path in (first, second):
        path.chmod(0o644)
    a, b = first.read_bytes(), second.read_bytes()
    first.write_bytes(b)
    second.write_bytes(a)


def _cut_medium(home: Path) -> None:
    path = _first_medium(home)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:50])


def _read_only(home: Path) -> None:
    for path in sorted((home / _RUN).rglob("*")):
        path.chmod(0o400)


def _other_build(home: Path) -> None:
    shutil.copytree(home / _BUILD, home / _SET / "2")


def _sealed_row(change: Callable[[dict[str, Any]], object]) -> Change:
    """Return a function that edits the first row of a build whose manifest is made to fit."""

    def apply(home: Path) -> None:
        from hashlib import sha256

        path, manifest = home / _ROWS, home / _MANIFEST
        path.chmod(0o644)
        manifest.chmod(0o644)
        first, *others = path.read_text().splitlines()
        row = json.loads(first)
        change(row)
        text = "\n".join([json.dumps(row), *others, ""])
        path.write_text(text)
        values = json.loads(manifest.read_text())
        values["instances_sha256"] = sha256(text.encode()).hexdigest()
        manifest.write_text(json.dumps(values))

    return apply


def _everywhere(value: Any) -> Callable[[dict[str, Any]], object]:
    """Return a function that gives every key of a row another value."""
    return lambda row: row.update(dict.fromkeys(row, value))


def _set(**values: Any) -> Callable[[Any], Any]:
    return lambda value: {**value, **values}


_BUILDS: dict[str, Change] = {
    "manifest empty": _bytes(_MANIFEST, lambda data: b""),
    "manifest cut": _bytes(_MANIFEST, lambda data: data[: len(data) // 2]),
    "manifest list": _json(_MANIFEST, lambda value: [value]),
    "manifest number": _json(_MANIFEST, lambda value: 3),
    "manifest nested": _bytes(_MANIFEST, lambda data: _DEEP),
    "manifest of 70 MB": _bytes(_MANIFEST, lambda data: data[:-2] + b" " * (70 * _MEGABYTE) + b"}"),
    "manifest UTF-16": _bytes(_MANIFEST, lambda data: data.decode().encode("utf-16")[:-1]),
    "manifest of a later format": _json(_MANIFEST, _set(format=99)),
    "manifest of no benchmark": _json(_MANIFEST, _set(benchmark="[bold]\x1b[2J")),
    "manifest of another benchmark": _json(_MANIFEST, _set(benchmark="clash")),
    "manifest benchmark list": _json(_MANIFEST, _set(benchmark=["cmc-bench"])),
    "manifest counts text": _json(
        _MANIFEST,
        lambda value: (
            dict.fromkeys(value, "x")
            | {"format": 1, "benchmark": "cmc-bench", "instances_sha256": value["instances_sha256"]}
        ),
    ),
    "manifest null": _json(
        _MANIFEST,
        lambda value: (
            dict.fromkeys(value)
            | {"format": 1, "benchmark": "cmc-bench", "instances_sha256": value["instances_sha256"]}
        ),
    ),
    "manifest FIFO": _instead(_MANIFEST, _fifo),
    "manifest device": _instead(_MANIFEST, _zero),
    "manifest folder": _instead(_MANIFEST, Path.mkdir),
    "rows empty": _bytes(_ROWS, lambda data: b""),
    "rows cut": _bytes(_ROWS, lambda data: data[:-20]),
    "rows edited": _bytes(_ROWS, lambda data: data.replace(b"kale", b"rye ")),
    "rows swapped": _bytes(_ROWS, lambda data: b"\n".join(reversed(data.splitlines())) + b"\n"),
    "rows FIFO": _instead(_ROWS, _fifo),
    "rows missing": _instead(_ROWS, lambda path: None),
    "rows of null": _sealed_row(_everywhere(None)),
    "rows of numbers": _sealed_row(_everywhere(10**30)),
    "rows of lists": _sealed_row(_everywhere([[]])),
    "rows of nested lists": _sealed_row(lambda row: row.update(question=json.loads("[" * 90 + "]" * 90))),
    "rows of escapes": _sealed_row(lambda row: row.update(question="\x1b[2J[bold]\u202e", id="\x1b]0;x\x07")),
    "rows without keys": _sealed_row(dict.clear),
    "media swapped": _swap_media,
    "medium cut": _cut_medium,
    "medium missing": lambda home: _first_medium(home).unlink(),
    "medium FIFO": lambda home: _instead(str(_first_medium(home).relative_to(home)), _fifo)(home),
    "medium device": lambda home: _instead(str(_first_medium(home).relative_to(home)), _zero)(home),
    "media outside": _instead(f"{_BUILD}/media", lambda path: path.symlink_to("/etc")),
}

_SETS: dict[str, Change] = {
    "set empty": _bytes(_LIST, lambda data: b""),
    "set list": _json(_LIST, lambda value: []),
    "set nested": _bytes(_LIST, lambda data: _DEEP),
    "set of no versions": _json(_LIST, _set(versions=[])),
    "set versions text": _json(_LIST, _set(versions="1")),
    "set versions of null": _json(_LIST, _set(versions=[None, {}])),
    "set table list": _json(_LIST, _set(table=["x"])),
    "set every value null": _json(_LIST, dict.fromkeys),
    "set benchmark path": _json(_LIST, _set(benchmark="../../x")),
    "set FIFO": _instead(_LIST, _fifo),
    "set pages list": _json(f"{_SET}/pages.json", lambda value: []),
    "set pages numbers": _json(f"{_SET}/pages.json", lambda value: dict.fromkeys(value, 3)),
    "set version missing": _instead(_BUILD, lambda path: None),
    "set version file": _instead(_BUILD, lambda path: path.write_text("x")),
    "set version loop": _instead(_BUILD, _loop),
    "set version added": _other_build,
    "set of another case": lambda home: shutil.copytree(home / _SET, home / "workspace/sets/ROWS"),
    "set name of escapes": lambda home: shutil.copytree(home / _SET, home / "workspace/sets/\x1b[2J[bold]"),
    "set removed in odd ways": _instead("workspace/sets/.removed", lambda path: path.write_text("x")),
}

_RUNS: dict[str, Change] = {
    "run text": _bytes(_DATABASE, lambda data: b"no database" * 1_000),
    "run empty": _bytes(_DATABASE, lambda data: b""),
    "run header only": _bytes(_DATABASE, lambda data: data[:100]),
    "run cut": _bytes(_DATABASE, lambda data: data[: len(data) // 2]),
    "run flipped": _bytes(_DATABASE, _flip),
    "run with a trigger": _sql("CREATE TRIGGER t AFTER UPDATE ON meta BEGIN DELETE FROM instance; END"),
    "run with a view": _sql("ALTER TABLE meta RENAME TO m", "CREATE VIEW meta AS SELECT * FROM m"),
    "run of an endless view": _sql(
        "ALTER TABLE meta RENAME TO m",
        "CREATE VIEW meta AS WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n) SELECT k AS key, k AS value FROM n",
    ),
    "run without tables": _sql("DROP TABLE meta"),
    "run of other columns": _sql("DROP TABLE meta", "CREATE TABLE meta (a, b, c)"),
    "run of odd values": _sql("UPDATE meta SET value = x'ff00ff'"),
    "run of nested values": _sql("UPDATE meta SET value = replace(hex(zeroblob(50000)), '0', '[')"),
    "run of a later version": _sql("PRAGMA user_version = 999"),
    "run of negative version": _sql("PRAGMA user_version = -5"),
    "run state list": _sql("UPDATE meta SET value = '[]' WHERE key = 'state'"),
    "run spec null": _sql("UPDATE meta SET value = 'null' WHERE key = 'spec'"),
    "run instances of escapes": _sql("UPDATE instance SET body = '\x1b[2J'"),
    "run instances of 100 MB": _sql("UPDATE instance SET body = hex(zeroblob(50000000)) WHERE ordinal = 1"),
    "run WAL left": _wal,
    "run read-only": _read_only,
    "run hard link": _hard_link,
    "run FIFO": _instead(_DATABASE, _fifo),
    "run folder": _instead(_DATABASE, Path.mkdir),
}


def _command(name: str) -> list[str]:
    if name in _BUILDS:
        return ["batch", *BATCH, "--data", "rows", "--name", "again", "--display", "none"]
    if name in _SETS:
        return ["sets"]
    return ["show", "asked", "--all"]


def _make(name: str) -> Make:
    def make(home: Path) -> list[str]:
        (_BUILDS | _SETS | _RUNS)[name](home)
        return _command(name)

    return make


NAMES = (*_BUILDS, *_SETS, *_RUNS)

_EXPECTED = r"""
manifest empty | 2 | /workspace/sets/rows/1 is not a built benchmark
manifest cut | 2 | /workspace/sets/rows/1 is not a built benchmark
manifest list | 2 | /workspace/sets/rows/1 has another build format; rebuild it with `rash
manifest number | 2 | /workspace/sets/rows/1 has another build format; rebuild it with `rash
manifest nested | 2 | /workspace/sets/rows/1 is not a built benchmark
manifest of 70 MB | 2 | /workspace/sets/rows/1/manifest.json is larger than 64 MB; restore the
manifest UTF-16 | 2 | /workspace/sets/rows/1 is not a built benchmark
manifest of a later format | 2 | /workspace/sets/rows/1 has another build format; rebuild it with `rash
manifest of no benchmark | 2 | /workspace/sets/rows/1 is a build of [bold]\x1b[2J, not of cmc-bench
manifest of another benchmark | 2 | /workspace/sets/rows/1 is a build of clash, not of cmc-bench
manifest benchmark list | 2 | /workspace/sets/rows/1 is a build of ['cmc-bench'], not of cmc-bench
manifest counts text | 0 |
manifest null | 0 |
manifest FIFO | 2 | /workspace/sets/rows/1/manifest.json is a FIFO where a regular file be
manifest device | 2 | /workspace/sets/rows/1/manifest.json is a link where a regular file be
manifest folder | 2 | /workspace/sets/rows/1/manifest.json is a folder where a regular file
rows empty | 2 | /workspace/sets/rows/1/instances.jsonl was changed after the build; re
rows cut | 2 | /workspace/sets/rows/1/instances.jsonl was changed after the build; re
rows edited | 2 | /workspace/sets/rows/1/instances.jsonl was changed after the build; re
rows swapped | 2 | /workspace/sets/rows/1/instances.jsonl was changed after the build; re
rows FIFO | 2 | /workspace/sets/rows/1/instances.jsonl is a FIFO where a regular file
rows missing | 2 | /workspace/sets/rows/1 is not a built benchmark
rows of null | 2 | /workspace/sets/rows/1 is not as cmc-bench writes its builds ('NoneTyp
rows of numbers | 2 | /workspace/sets/rows/1 is not as cmc-bench writes its builds ('int' ob
rows of lists | 2 | /workspace/sets/rows/1 is not as cmc-bench writes its builds (list ind
rows of nested lists | 2 | /workspace/sets/rows/1 is not as cmc-bench writes its builds (a text i
rows of escapes | 0 |
rows without keys | 2 | /workspace/sets/rows/1 is not as cmc-bench writes its builds ('image'
media swapped | 0 |
medium cut | 0 |
medium missing | 0 |
medium FIFO | 0 |
medium device | 0 |
media outside | 0 |
set empty | 0 |
set list | 0 |
set nested | 0 |
set of no versions | 0 |
set versions text | 0 |
set versions of null | 0 |
set table list | 0 |
set every value null | 0 |
set benchmark path | 0 |
set FIFO | 0 |
set pages list | 0 |
set pages numbers | 0 |
set version missing | 0 |
set version file | 0 |
set version loop | 0 |
set version added | 0 |
set of another case | 0 |
set name of escapes | 0 |
set removed in odd ways | 0 |
run text | 3 | asked is damaged: run.sqlite: file is not a database; `rashomon doctor
run empty | 2 | /workspace/runs/asked was never planned completely; remove it and star
run header only | 3 | asked is damaged: run.sqlite: database disk image is malformed; `rasho
run cut | 3 | asked is damaged: run.sqlite: database disk image is malformed; `rasho
run flipped | 3 | asked is damaged: table instance
run with a trigger | 2 | /workspace/runs/asked is not a run as Rashomon creates it: its databas
run with a view | 2 | /workspace/runs/asked is not a run as Rashomon creates it: its databas
run of an endless view | 2 | /workspace/runs/asked is not a run as Rashomon creates it: its databas
run without tables | 2 | /workspace/runs/asked is not a run as Rashomon creates it: its databas
run of other columns | 2 | /workspace/runs/asked is not a run as Rashomon creates it: its databas
run of odd values | 3 | asked is damaged: table meta, row 'conditions': its values are not tho
run of nested values | 3 | asked is damaged: table meta, row 'conditions': its values are not tho
run of a later version | 2 | this run was written by a newer Rashomon (schema 999); update Rashomon
run of negative version | 2 | this run's database has the invalid schema version -5; restore it from
run state list | 3 | asked is damaged: table meta, row 'state': its values are not those th
run spec null | 3 | asked is damaged: table meta, row 'spec': its values are not those tha
run instances of escapes | 3 | asked is damaged: table instance, row 0: its values are not those that
run instances of 100 MB | 3 | asked is damaged: run.sqlite: string or blob too big; `rashomon doctor
run WAL left | 0 |
run read-only | 0 |
run hard link | 0 |
run FIFO | 2 | /workspace/runs/asked/run.sqlite is a FIFO where a regular file belong
run folder | 2 | /workspace/runs/asked/run.sqlite is a folder where a regular file belo
"""


def all_cases() -> list[Case]:
    """Return the cases with what a user gets for each."""
    return cases(_make, _EXPECTED)
