"""Damaged, altered and hostile run databases: each is named or harmless, and none hides another run."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from app.doctor.damaged_run_check import check_run
from app.engine.adopt_run import adopt, read_received_run
from app.store.database_schema import NO_DIGESTS
from app.store.integrity.row_digests import COLUMNS, as_stored, row_digest
from app.store.run_database import DATABASE
from app.store.run_store import RunStore
from app.store.summary_cache import Summaries
from app.store.workspace import Workspace
from benchmarks.errors import StoreError
from tests.support.damaged import OTHER, RUN, Damaged
from tests.support.json_output import json_result
from tests.support.old_runs import as_version, sealed
from tests.support.runs import read_all

NO_UTF8 = b"\xff\xfe\xfd"
HOSTILE = (
    None,
    -1,
    2**62,
    1.5,
    1e308,
    float("inf"),
    "",
    "x",
    "[]",
    "{}",
    "null",
    "7",
    '"x"',
    "[" * 100_000,
    "[" * 500 + "]" * 500,
    '{"a":1e999}',
    "NaN",
    "\x00",
    "\x1b]52;c;x\x07",
    "x" * 100_000,
    b"",
    NO_UTF8,
    b"\x00\x01\x02",
)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Damaged:
    return Damaged(tmp_path_factory.mktemp("damaged") / "home")


def flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def corrupted(content: bytes, chance: random.Random) -> bytes:
    """Bytes overwritten, pages swapped, the end cut off, or the header changed."""
    changed, page = bytearray(content), 4096
    kind = chance.randrange(5)
    if kind == 0:
        start, count = chance.randrange(len(changed)), chance.choice((1, 8, 100, 4096))
        changed[start : start + count] = chance.randbytes(min(count, len(changed) - start))
    elif kind == 1:
        first, second = (chance.randrange(len(changed) // page) * page for _ in range(2))
        changed[first : first + page], changed[second : second + page] = (
            changed[second : second + page],
            changed[first : first + page],
        )
    elif kind == 2:
        del changed[chance.randrange(len(changed)) :]
    elif kind == 3:
        changed[chance.randrange(100)] = chance.randrange(256)
    else:
        start = chance.randrange(len(changed) // page) * page
        changed[start : start + page] = bytes(page)
    return bytes(changed)


def altered(folder: Path, chance: random.Random, *, seal: bool) -> None:
    """Change one value of one row by SQL, as a run's author can."""
    table = chance.choice(sorted(COLUMNS))
    column, value = chance.choice(COLUMNS[table]), chance.choice(HOSTILE)
    as_text = chance.random() < 0.3 and not (seal and value == NO_UTF8)  # the SQL function of a seal takes only UTF-8
    with sealed(folder) if seal else unsealed(folder) as database:
        keys = [row[0] for row in database.execute(f"SELECT {COLUMNS[table][0]} FROM {table}")]
        try:
            database.execute(
                f"UPDATE {table} SET {column} = {'CAST(? AS TEXT)' if as_text else '?'} WHERE {COLUMNS[table][0]} = ?",
                (value, chance.choice(keys)),
            )
        except sqlite3.IntegrityError:  # what the schema itself forbids
            database.rollback()


class unsealed:  # noqa: N801
    def __init__(self, folder: Path) -> None:
        self._database = sqlite3.connect(folder / DATABASE)

    def __enter__(self) -> sqlite3.Connection:
        return self._database

    def __exit__(self, *_: object) -> None:
        self._database.commit()
        self._database.close()


@pytest.mark.slow
def test_sixty_flipped_bits_change_nothing_silently(damaged: Damaged) -> None:
    chance = random.Random(1)
    assert sum(damaged.check_reading(flipped(damaged.content, chance)) for _ in range(60)) > 10


def test_thirty_corruptions_change_nothing_silently(damaged: Damaged) -> None:
    chance = random.Random(2)
    assert sum(damaged.check_reading(corrupted(damaged.content, chance)) for _ in range(30)) > 10


def test_commands_name_damage_in_a_sentence(damaged: Damaged) -> None:
    chance = random.Random(3)
    assert sum(damaged.check(flipped(damaged.content, chance)) for _ in range(4)) > 0


@pytest.mark.slow
def test_a_thousand_flipped_bits_change_no_output_silently(damaged: Damaged) -> None:
    chance = random.Random(4)
    named = sum(damaged.check(flipped(damaged.content, chance)) for _ in range(1000))
    print(f"{named} of 1,000 flipped bits are named, the others are harmless")
    assert named > 200  # the test looks at something: 275 of them at the time of writing


@pytest.mark.slow
def test_five_hundred_corruptions_change_no_output_silently(damaged: Damaged) -> None:
    chance = random.Random(5)
    named = sum(damaged.check(corrupted(damaged.content, chance)) for _ in range(500))
    print(f"{named} of 500 corruptions are named, the others are harmless")
    assert named > 200


def alterations(damaged: Damaged, look: Callable[[], object], count: int, *, seal: bool) -> None:
    chance = random.Random(6 + seal)
    for _ in range(count):
        damaged.put(damaged.content)
        altered(damaged.folder, chance, seal=seal)
        look()


@pytest.mark.parametrize("seal", [False, True])
def test_twenty_altered_values_are_no_traceback(damaged: Damaged, seal: bool) -> None:
    alterations(damaged, damaged.read, 20, seal=seal)


@pytest.mark.slow
@pytest.mark.parametrize("seal", [False, True])
def test_three_hundred_altered_values_are_no_traceback(damaged: Damaged, seal: bool) -> None:
    look = damaged.look if seal else damaged.judged
    alterations(damaged, look, 300, seal=seal)


META = {
    "state": ["[]", "7", "null", '{"state":1}', "[" * 5000],
    "spec": ["{}", "[]", '{"judge":[]}', '{"judge":["match"],"benchmark":"nope"}', '{"judge":["match"]}'],
    "identity": ["7", '{"device":[]}'],
    "created": ['"x"', "1e300", "-5", "NaN"],
    "remarks": ["7", "[7]"],
    "conditions": ["7"],
    "correct": ["[]", '{"aligned":7}'],
    "excluded": ["[]", '{"smell":1}', '{"total":"x"}', '{"by":{"smell":3},"total":3,"of":5}'],
    "canary": ["7", "[7]", '[{"way":7}]'],
    "deaths": ["[7]", '[{"cause":"x","at":1,"width":null,"suspects":[],"failed":[],"more":1}]'],
    "judges": ['{"match@1":7}'],
    "reached": ['"wide"'],
    "data": ["7", r'"a\u0000b"'],
}


def test_every_value_of_meta_that_is_of_another_kind_is_a_sentence(damaged: Damaged) -> None:
    for key, values in META.items():
        for value in values:
            damaged.put(damaged.content)
            with sealed(damaged.folder) as database:
                database.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))
            result = damaged.read()
            if not value.startswith(('{"judge":["match"]', '{"by":{"smell"')):
                assert isinstance(result, str), (key, value)
                assert RUN in result, (key, result)


ENDLESS = (
    "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i AS key, i AS value, i AS digest FROM n"
)


@pytest.mark.parametrize(
    "sql",
    [
        f"DROP TABLE meta; CREATE VIEW meta AS {ENDLESS}",
        "CREATE TRIGGER more AFTER INSERT ON verdict BEGIN DELETE FROM generation; END",
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON generation (text)",
        "DROP INDEX accepted_label",
        "ALTER TABLE generation ADD COLUMN more",
        "PRAGMA user_version = 3",
        "PRAGMA user_version = 99",
        "PRAGMA user_version = -4",
    ],
)
def test_a_foreign_schema_is_refused_and_the_other_run_is_listed(damaged: Damaged, sql: str) -> None:
    damaged.put(damaged.content)
    database = sqlite3.connect(damaged.folder / DATABASE)
    database.executescript(sql)
    database.close()
    runs = {run.name: run for run in Workspace(damaged.rashomon.workspace).summaries()}
    assert runs[RUN].problem
    assert runs[OTHER].problem is None
    for opened in (RunStore.read, RunStore.open):
        with pytest.raises(StoreError):
            opened(damaged.folder)


def test_a_damaged_name_in_the_schema_is_a_sentence(damaged: Damaged) -> None:
    at = damaged.content.index(b"accepted_label")
    damaged.put(damaged.content[:at] + b"\xd4" + damaged.content[at + 1 :])
    assert isinstance(damaged.read(), str)
    for opened in (RunStore.read, RunStore.open):
        with pytest.raises(StoreError):
            opened(damaged.folder)


def test_a_row_has_the_digest_it_always_had() -> None:
    row = (5, 2**40, -(2**63), "d" * 64, "ä\u20ac\U0001f600", b"\0\1", None, 0.1, 1e308, float("inf"), "stop", "stop")
    assert row_digest("generation", row).hex() == "d7736b6de27e3cf5"


def test_numbers_are_digested_as_they_are_read_back() -> None:
    row = dict.fromkeys(COLUMNS["generation"])
    row |= {
        "id": True,
        "calls": 3.0,
        "prompt_tokens": 2.5,
        "decode_s": 1,
        "prefill_s": -0.0,
        "finished_at": float("nan"),
    }
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE n (i INTEGER, c INTEGER, p INTEGER, s REAL, d REAL, f REAL)")
    connection.execute("INSERT INTO n VALUES (:id, :calls, :prompt_tokens, :prefill_s, :decode_s, :finished_at)", row)
    stored = dict(zip(COLUMNS["generation"], as_stored("generation", row), strict=True))
    (read,) = connection.execute("SELECT * FROM n").fetchall()
    names = ("id", "calls", "prompt_tokens", "prefill_s", "decode_s", "finished_at")
    assert repr([stored[name] for name in names]) == repr(list(read))


def test_real_processes_name_an_unreadable_run_and_list_the_other(damaged: Damaged) -> None:
    damaged.put(damaged.content)
    with sealed(damaged.folder) as database:
        database.execute("UPDATE meta SET value = '[]' WHERE key = 'state'")
        database.execute("UPDATE meta SET value = '[]' WHERE key = 'spec'")
    listed = json_result(damaged.rashomon.process("runs", "--json").stdout)
    assert {run["name"]: bool(run["problem"]) for run in listed} == {RUN: True, OTHER: False}
    assert "table meta" in damaged.rashomon.process("show", RUN, code=3).stderr
    assert "table meta" in damaged.rashomon.process("doctor", RUN, code=1).stdout


@pytest.mark.parametrize("version", [2, 5, 6])
def test_the_canonical_export_of_an_older_run_is_the_same(damaged: Damaged, version: int) -> None:
    damaged.put(damaged.content)
    as_version(damaged.folder, version)
    before = (damaged.folder / DATABASE).read_bytes()
    out = damaged.rashomon.home / f"older-{version}"
    damaged.rashomon.run("export", RUN, "--canonical", "--format", "csv", "--out", out)
    expected = {name: content for name, content in damaged.expected.export[1].items() if name != "behaviours.csv"}
    assert {path.name: path.read_bytes() for path in out.iterdir()} == expected, "which older runs do not tell apart"
    assert [path.read_bytes() for path in damaged.folder.glob(f"{DATABASE}*")] == [before]
    assert "written without digests" in damaged.rashomon.run("show", RUN, "--spec").stdout


@pytest.mark.parametrize(
    ("table", "column"), [("meta", "value"), ("instance", "body"), ("generation", "text"), ("verdict", "reason")]
)
@pytest.mark.parametrize("version", [2, 6])
def test_an_older_run_with_text_that_is_not_utf8_is_refused_in_a_sentence(
    damaged: Damaged, version: int, table: str, column: str
) -> None:
    damaged.put(damaged.content)
    as_version(damaged.folder, version)
    with sqlite3.connect(damaged.folder / DATABASE) as database:
        key = "key = 'remarks'" if table == "meta" else f"{COLUMNS[table][0]} = 3"
        database.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE {key}", (NO_UTF8,))
    database.close()
    with pytest.raises(StoreError) as refused:
        RunStore.open(damaged.folder)
    assert "user-defined" not in str(refused.value)
    assert RUN in str(refused.value)
    with sqlite3.connect(damaged.folder / DATABASE) as database:
        assert database.execute("PRAGMA user_version").fetchone()[0] <= NO_DIGESTS
    database.close()
    assert "user-defined" not in damaged.rashomon.run("doctor", RUN, code=1).stdout
    damaged.put(damaged.content)


def unusable(folder: Path) -> Iterator[None]:
    path = folder / DATABASE
    os.mkfifo(path)
    yield
    path.unlink()
    path.symlink_to("/dev/zero")
    yield
    path.unlink()
    path.mkdir()
    yield
    path.rmdir()


def test_what_is_no_file_in_the_place_of_a_database_hides_no_run(damaged: Damaged) -> None:
    workspace = Workspace(damaged.rashomon.workspace)
    listed = Summaries(workspace)
    for path in damaged.folder.glob(f"{DATABASE}*"):
        path.unlink()
    for _ in unusable(damaged.folder):
        for runs in (workspace.summaries(), read_all(listed)):
            assert {run.name: bool(run.problem) for run in runs} == {RUN: True, OTHER: False}
    damaged.put(damaged.content)


def test_the_doctor_says_what_is_damaged_and_what_can_be_saved(damaged: Damaged) -> None:
    damaged.put(damaged.content)
    findings = damaged.rashomon.json("doctor", RUN)
    assert all(finding["ok"] for finding in findings)
    with unsealed(damaged.folder) as database:
        database.execute("UPDATE generation SET text = 'no' WHERE id = 3")
        database.execute("UPDATE progress SET done = done - 1 WHERE condition = 'image-only'")
        database.execute("DELETE FROM verdict WHERE id = 5")
    findings = {f["check"]: f for f in damaged.rashomon.json("doctor", RUN, code=1)}
    bad = {what for what, finding in findings.items() if not finding["ok"]}
    assert bad == {"rows", "missing", "counters", "to save"}
    assert "table generation, row 3" in findings["rows"]["message"]
    assert "adopt" in findings["to save"]["fix"]


_TAKEN_OVER = ("meta", "instance", "engine", "generation", "verdict")
_ACCEPTED = {
    "generation": "accepted",
    "verdict": "accepted AND generation IN (SELECT id FROM generation WHERE accepted)",
}
"""The rows that can be lost: what is set aside is examined too, but never taken over."""


@pytest.mark.parametrize("seed", range(30))
def test_what_the_doctor_calls_lost_is_what_adopting_leaves_out(
    damaged: Damaged, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("app.doctor.damaged_run_check._MAX_LISTED", 1000)
    damaged.put(damaged.content)
    chance = random.Random(seed)
    with unsealed(damaged.folder) as database:
        for table in chance.choices([*COLUMNS, "tally"], k=chance.choice((1, 1, 3))):
            key = {"judged": "judge", "tally": "name"}.get(table) or COLUMNS[table][0]
            name = chance.choice(
                database.execute(f"SELECT {key} FROM {table} WHERE {_ACCEPTED.get(table, 1)}").fetchall()
            )
            column = chance.choice(database.execute(f"PRAGMA table_info({table})").fetchall())[1]
            with suppress(sqlite3.IntegrityError):
                if chance.random() < 0.4:
                    database.execute(f"DELETE FROM {table} WHERE {key} = ?", name)
                else:
                    value = chance.choice((0, 1, 7, "x", "[]", None, 1.5))
                    database.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (value, *name))
    workspace = Workspace(damaged.rashomon.workspace)
    findings = {finding.check: finding for finding in check_run(workspace, damaged.folder)}
    message = " ".join(findings[what].message for what in ("rows", "missing") if not findings[what].ok)
    adopted = None
    with suppress(StoreError):  # where its spec is lost there is nothing to adopt
        adopted = adopt(workspace, read_received_run(workspace, damaged.folder), name="adopted")
    if adopted is None:
        assert "table meta" in message
        return
    shutil.rmtree(adopted.folder)
    left_out = " ".join(adopted.left_out)
    row = re.compile(r"table (?:instance|engine|generation|verdict|meta), row [^:]+(?=: its values)")
    assert {*row.findall(left_out)} <= {*row.findall(message)}
    assert bool(left_out) == any(f"table {table}" in message for table in _TAKEN_OVER)
    if not findings["to save"].ok:
        assert f" {adopted.answers} instances have a valid answer" in findings["to save"].message
