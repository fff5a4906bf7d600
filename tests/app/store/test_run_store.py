"""A run's store loses nothing reported as done, and counts nothing twice."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from app.engine.answer_loop import AnswerLoop, judge_pending
from app.store.database_schema import MIGRATIONS, NO_DIGESTS
from app.store.file_locks import FileLock
from app.store.run_database import DATABASE
from app.store.run_salvage import Salvage
from app.store.run_store import RunStore
from app.store.sample_lists import SAMPLE_OUTCOMES, SampleFilter
from app.store.store_types import ConditionProgress, JudgedCounts, NewAnswer
from benchmarks.errors import StoreError, StoreFullError
from benchmarks.vocabulary import Generation, Instance, Text, Verdict, VerdictStatus, instance_to_json
from tests.support.old_runs import as_version
from tests.support.toy import EvenJudge, Scripted, Toy, TwoSteps, toy_instances
from tests.support.trust import seal

META = {
    "spec": {"judge": ["even"]},
    "conditions": list(Toy.conditions),
    "correct": {"plain": ["YES"], "twisted": ["NO"]},
}


def make(folder: Path, count: int = 20) -> RunStore:
    folder.mkdir(exist_ok=True)
    store = RunStore.create(folder, META, toy_instances(count))
    store.use_engine({"engine": "scripted"})
    return store


def answer(store: RunStore) -> None:
    AnswerLoop(store, Scripted(capacity=3), TwoSteps(), [EvenJudge()], Toy()).run()


def exact(store: RunStore) -> list[ConditionProgress]:
    return [replace(p, seconds=round(p.seconds, 6)) for p in store.progress()]


def test_a_record_comes_back_as_it_was_committed(tmp_path: Path) -> None:
    instance = Instance("a/b", "a", "plain", "q\x00\x1b[31m?", (Text("‮ text"),), {"image": ("1", "2")}, {"kind": "x"})
    store = RunStore.create(tmp_path, META, [instance])
    store.use_engine({"engine": "x"})
    generation = Generation(
        instance.id + "#0",
        "naïve \x1b]52;c;x\x07",
        "length",
        (1, 2**32 - 1),
        5,
        2,
        0.1,
        0.2,
        2**40,
        active_memory=2**39,
        cache_memory=2**38,
    )
    verdict = Verdict("even@1", "labelled", "YES", "why", "raw")
    store.commit([NewAnswer(0, "plain", 0, "digest", generation, True, (verdict,))])
    (record,) = store.records()
    assert record.instance == instance
    assert record.generations == (generation,)
    assert record.verdicts == {"even@1": verdict}
    assert record.outcome("even@1") == "labelled"
    assert record.outcome("another@1") == "pending"


def test_text_that_utf8_cannot_hold_is_kept_visibly(tmp_path: Path) -> None:
    store = make(tmp_path, 1)
    broken = Generation("example-0/plain#0", "half a pair: \ud800", "stop")
    store.commit([NewAnswer(0, "plain", 0, "d", broken, True)])
    (record,) = store.records()
    assert record.answer is not None
    assert record.answer.text == "half a pair: \\ud800"


def test_a_closed_run_is_one_file(tmp_path: Path) -> None:
    store = make(tmp_path, 4)
    answer(store)
    assert len(list(tmp_path.iterdir())) > 1, "while it is written there is a log beside it"
    store.close()
    with RunStore.read(tmp_path) as read:
        assert sum(p.done for p in read.progress()) == 4
        assert [path.name for path in tmp_path.iterdir()] == [DATABASE]
    assert [path.name for path in tmp_path.iterdir()] == [DATABASE]


def test_one_accepted_generation_an_instance_and_step_is_the_databases_own_rule(tmp_path: Path) -> None:
    store = make(tmp_path, 1)
    new_answer = NewAnswer(0, "plain", 0, "d", Generation("example-0/plain#0", "x", "stop"), True)
    store.commit([new_answer])
    with pytest.raises(StoreError, match="UNIQUE"):
        store.commit([new_answer])


def test_counters_equal_a_count_of_the_rows(tmp_path: Path) -> None:
    store = make(tmp_path, 60)
    AnswerLoop(
        store,
        Scripted(4, failing=frozenset({"example-3/plain#1", "example-5/twisted#0"})),
        TwoSteps(),
        [EvenJudge()],
        Toy(),
    ).run()
    kept = exact(store)
    assert sum(p.done for p in kept) == 60
    assert sum(p.errors for p in kept) == 2
    assert all(p.judged["even@1"].failed for p in kept), "the judge fails on one answer in ten"
    store.repeat(["no such condition"])  # sets nothing aside, but counts everything anew
    assert exact(store) == kept


def test_a_judge_added_later_judges_what_is_there_and_never_an_error(tmp_path: Path) -> None:
    store = make(tmp_path, 30)
    AnswerLoop(store, Scripted(failing=frozenset({"example-1/plain#0"})), TwoSteps(), [], Toy()).run()
    assert judge_pending(store, EvenJudge(), Toy()) == 29
    assert judge_pending(store, EvenJudge(), Toy()) == 0
    outcomes = {record.instance.id: record.outcome("even@1") for record in store.records()}
    assert outcomes["example-1/plain"] == "error"
    assert set(outcomes.values()) <= {"error", "labelled", "unparsed", "judge-failed"}


def test_repeating_a_condition_sets_its_answers_aside_and_keeps_them(tmp_path: Path) -> None:
    store = make(tmp_path, 20)
    answer(store)
    first = {record.instance.id: record.generations for record in store.records()}
    assert store.repeat(["twisted"]) == 10
    assert [(p.condition, p.done) for p in store.progress()] == [("plain", 10), ("twisted", 0)]
    answer(store)
    assert {record.instance.id: record.generations for record in store.records()} == first
    rows = (
        sqlite3.connect(tmp_path / DATABASE).execute("SELECT accepted, count(*) FROM generation GROUP BY 1").fetchall()
    )
    assert rows == [(0, 20), (1, 40)]


def test_only_errors_are_asked_again_when_told_so(tmp_path: Path) -> None:
    store = make(tmp_path, 20)
    AnswerLoop(store, Scripted(failing=frozenset({"example-2/plain#1"})), TwoSteps(), [EvenJudge()], Toy()).run()
    assert store.repeat(errors_only=True) == 1
    backend = Scripted()
    AnswerLoop(store, backend, TwoSteps(), [EvenJudge()], Toy()).run()
    assert backend.calls == ["example-2/plain#0", "example-2/plain#1"]
    assert sum(p.errors for p in store.progress()) == 0


def test_a_database_at_its_page_limit_loses_nothing_that_was_reported(tmp_path: Path) -> None:
    store = make(tmp_path, 400)
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages + 6}")
    backend = Scripted()
    with pytest.raises(StoreFullError, match=r"is full.*every answer reported done is safe"):
        AnswerLoop(store, backend, TwoSteps(), [EvenJudge()], Toy()).run()
    store.close()
    with RunStore.open(tmp_path) as again:
        done = sum(p.done for p in again.progress())
        assert 0 < done < 400
        assert sum(record.answer is not None and len(record.generations) == 2 for record in again.records()) == done
        again.use_engine({"engine": "scripted"})
        AnswerLoop(again, Scripted(), TwoSteps(), [EvenJudge()], Toy()).run()
        assert sum(p.done for p in again.progress()) == 400


def test_a_run_in_a_folder_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with make(folder, 4) as store:
        answer(store)
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with RunStore.read(folder) as store:
            assert sum(p.done for p in store.progress()) == 4
        if os.geteuid():
            with pytest.raises(StoreError, match="writable"):
                RunStore.open(folder).use_engine({})
    finally:
        folder.chmod(stat.S_IRWXU)


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"not a database at all, just bytes" * 50, "is damaged"), (b"", "never planned")],
)
def test_a_damaged_database_is_told_in_a_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / DATABASE).write_bytes(content)
    with pytest.raises(StoreError, match=says):
        RunStore.read(tmp_path)


def test_a_run_written_by_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    make(tmp_path, 2).close()
    with sqlite3.connect(tmp_path / DATABASE) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(StoreError, match="newer Rashomon"):
        RunStore.open(tmp_path)


def test_pages_damaged_in_the_middle_are_told_too(tmp_path: Path) -> None:
    with make(tmp_path, 400) as store:
        answer(store)
    path = tmp_path / DATABASE
    content = bytearray(path.read_bytes())
    content[8192 : len(content) // 2] = b"\xff" * (len(content) // 2 - 8192)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged"), RunStore.read(tmp_path) as store:
        list(store.records())


def test_two_processes_that_migrate_at_once_both_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, 2).close()
    slow = (*MIGRATIONS, "CREATE TABLE extra AS WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n"
            " WHERE i < 300000) SELECT count(*) FROM n")  # fmt: skip
    monkeypatch.setattr("app.store.database_schema.MIGRATIONS", slow)
    failures: list[BaseException] = []

    def migrate_once() -> None:
        try:
            RunStore.open(tmp_path).close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=migrate_once) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_reading_a_run_of_an_older_version_brings_it_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, 2).close()
    newer = (*MIGRATIONS, "CREATE TABLE extra (x)")
    monkeypatch.setattr("app.store.database_schema.MIGRATIONS", newer)
    with RunStore.read(tmp_path) as store:
        assert store._rows("SELECT count(*) FROM extra") == [(0,)]


def test_a_copy_whose_log_cannot_be_read_is_refused_rather_than_shown_old(tmp_path: Path) -> None:
    store = make(tmp_path / "run", 20)
    answer(store)
    (tmp_path / "copy").mkdir()
    for name in (DATABASE, DATABASE + "-wal"):
        (tmp_path / "copy" / name).write_bytes((tmp_path / "run" / name).read_bytes())
    with RunStore.read(tmp_path / "copy") as copied:
        assert sum(p.done for p in copied.progress()) == 20


def test_repeating_takes_back_the_first_step_of_what_is_half_done(tmp_path: Path) -> None:
    store = make(tmp_path, 4)

    def one_is_there() -> bool:
        return bool(store._rows("SELECT 1 FROM generation"))

    AnswerLoop(store, Scripted(), TwoSteps(), [], Toy(), stop=one_is_there).run()
    half = [record for record in store.records() if len(record.generations) == 1]
    assert half, "stopped between two steps"
    store.repeat()
    assert [len(record.generations) for record in store.records()] == [0] * 4
    answer(store)
    assert [len(record.generations) for record in store.records()] == [2] * 4


def test_looking_at_a_lock_refuses_nobody(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.acquire("first")
    lock.release()
    end = threading.Event()

    def look() -> None:
        while not end.is_set():
            FileLock(tmp_path / "lock").holder()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(300):
            with FileLock(tmp_path / "lock") as mine:
                assert mine.acquire("worker")
    finally:
        end.set()
        thread.join()
    with FileLock(tmp_path / "lock") as mine:
        assert mine.acquire("process 7")
        assert FileLock(tmp_path / "lock").holder() == "process 7"
        assert not FileLock(tmp_path / "lock").acquire("other", patience=0.05)
    assert FileLock(tmp_path / "lock").holder() is None


def test_a_run_of_the_first_version_keeps_its_answers_and_goes_on(tmp_path: Path) -> None:
    instance, later = toy_instances(2)
    with sqlite3.connect(tmp_path / DATABASE) as connection:
        for statement in MIGRATIONS[0].split(";\n"):
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 1")
        for key, value in META.items():
            connection.execute("INSERT INTO meta VALUES (?, ?)", (key, json.dumps(value)))
        body = json.dumps(instance_to_json(instance))
        connection.execute("INSERT INTO instance VALUES (0, ?, ?, ?, 1)", (instance.id, instance.condition, body))
        body = json.dumps(instance_to_json(later))
        connection.execute("INSERT INTO instance VALUES (1, ?, ?, ?, 0)", (later.id, later.condition, body))
        connection.execute("INSERT INTO progress (condition, total) VALUES (?, 1)", (later.condition,))
        connection.execute("INSERT INTO engine VALUES (1, '{}')")
        connection.execute(
            "INSERT INTO generation VALUES (1, 0, 0, 1, 'r', 'answer 4', 'stop', x'', 3, 2, 0.1, 0.2, 9, NULL, 1, 0.0)"
        )
        connection.execute("INSERT INTO verdict VALUES (1, 'even@1', 'labelled', 'YES', 'parity', NULL, 0.0)")
        connection.execute("INSERT INTO progress (condition, total, done) VALUES (?, 1, 1)", (instance.condition,))
        connection.execute("INSERT INTO judged VALUES (?, 'even@1', 1, 1, 0, 0)", (instance.condition,))
    connection.close()
    with RunStore.read(tmp_path) as store:
        record, _ = store.records()
        assert record.answer is not None
        assert (record.answer.text, record.answer.calls, record.answer.peak_memory) == ("answer 4", 1, 9)
        assert (record.answer.active_memory, record.answer.cache_memory) == (None, None), "nobody measured them"
        assert record.verdicts == {"even@1": Verdict("even@1", "labelled", "YES", "parity")}
        assert store.progress()[0].judged["even@1"].correct == 1
    seal(tmp_path)
    with RunStore.open(tmp_path) as store:
        store.use_engine({"engine": "scripted"})
        AnswerLoop(store, Scripted(), TwoSteps(), [EvenJudge()], Toy()).run()
        assert [len(record.generations) for record in store.records()] == [1, 2]
        assert [progress.done for progress in store.progress()] == [1, 1]


def folder_content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_reading_a_run_of_an_older_version_changes_nothing_in_its_folder(tmp_path: Path, version: int) -> None:
    with make(tmp_path, 20) as store:
        answer(store)
        expected = list(store.records())
    as_version(tmp_path, version)
    before = folder_content(tmp_path)
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with RunStore.read(tmp_path) as store:
            assert list(store.records()) == expected
            assert sum(p.done for p in store.progress()) == 20
            assert store.undigested == (40 if version <= NO_DIGESTS else None)
            assert len(store.sample_ordinals(SampleFilter())) == 20
    finally:
        tmp_path.chmod(stat.S_IRWXU)
    assert folder_content(tmp_path) == before
    with RunStore.open(tmp_path) as store:
        store.use_engine({"engine": "scripted"})
        assert store.repeat(["plain"]) == 10
        answer(store)
        assert [record.generations for record in store.records()] == [record.generations for record in expected]
    with Salvage.read(tmp_path) as store:
        problems: list[StoreError] = []
        saved = list(store.saved(problems.append))
        store.find_missing(problems.append)
        store.find_wrong_counters(problems.append)
        assert (store.undigested, problems) == (40 if version <= NO_DIGESTS else None, [])
        assert [item.instance for item in saved] == [record.instance for record in expected]
        assert all(len(item.answers) == 2 and item.done for item in saved)


@pytest.mark.parametrize("version", range(NO_DIGESTS, len(MIGRATIONS) + 1))
def test_a_verdict_of_each_status_is_kept_and_counted_apart(tmp_path: Path, version: int) -> None:
    statuses: tuple[VerdictStatus, ...] = get_args(VerdictStatus)
    verdicts = [Verdict("even@1", status, "YES" if status == "labelled" else None, "why") for status in statuses]
    names = [f"example-{number}/plain" for number in range(len(statuses))]
    with make(tmp_path, 2 * len(names)) as store:
        for number, name in enumerate(names):
            generation = Generation(f"{name}#0", "4", "stop")
            store.commit([NewAnswer(2 * number, "plain", 0, "digest", generation, True)])
    as_version(tmp_path, version)
    with RunStore.read(tmp_path) as store:
        assert not store.progress()[0].judged
    with RunStore.open(tmp_path) as store:
        for name, verdict in zip(names, verdicts, strict=True):
            generation_id, condition = store.answer_of(name) or (0, "")
            store.add_verdicts([(generation_id, condition, verdict)])
        kept = [record.verdicts["even@1"] for record in store.records() if record.verdicts]
        assert kept == verdicts
        assert store.progress()[0].judged["even@1"] == JudgedCounts(1, 1, 1, 1, 1)
        assert store.counted()[1] == {
            (row["condition"], row["judge"]): row for row in store._counters().judged.values()
        }
        for outcome in SAMPLE_OUTCOMES[:1] + SAMPLE_OUTCOMES[2:5]:
            assert len(store.sample_ordinals(SampleFilter(judges=("even@1",), outcomes=(outcome,)))) == 1, outcome
        assert store.retract("even@1", status="undecided") == 1
        assert store.progress()[0].judged["even@1"].total == 3


@pytest.mark.parametrize("version", range(NO_DIGESTS + 1, len(MIGRATIONS)))
def test_counters_of_before_are_read_without_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    with make(tmp_path, 20) as store:
        answer(store)
        expected = exact(store)
    as_version(tmp_path, version)
    monkeypatch.setattr("app.store.database_connection.open_copy", None)
    with RunStore.read(tmp_path) as store:
        assert exact(store) == expected


def judged_rows(folder: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        return database.execute("SELECT judge, labelled, correct FROM judged ORDER BY 1").fetchall()


def test_a_judge_whose_every_word_was_taken_back_counts_nowhere(tmp_path: Path) -> None:
    override = Verdict("override:root@1", "labelled", "YES", "seen by hand")
    with make(tmp_path, 2) as store:
        answer(store)
        before = judged_rows(tmp_path)
        (generation, condition), *_ = [item for item in [store.answer_of("example-0/plain")] if item]
        store.add_verdicts([(generation, condition, override)])
        assert "override:root@1" in store.progress()[0].judged
        assert store.retract("override:root@1", instance="example-0/plain") == 1
        assert not any("override:root@1" in p.judged for p in store.progress())
    assert judged_rows(tmp_path) == before


def test_a_label_on_an_answer_that_is_set_aside_meanwhile_counts_nowhere(tmp_path: Path) -> None:
    with make(tmp_path, 4) as store, RunStore.open(tmp_path) as labelling:
        answer(store)
        shown = labelling.answer_of("example-0/plain")
        assert shown is not None
        store.repeat()
        for label in ("YES", "NO"):
            labelling.add_verdicts([(*shown, Verdict("human:ann@1", "labelled", label, "by hand"))])
        assert not any("human:ann@1" in p.judged for p in store.progress())
        answer(store)
        kept = exact(store)
        store.repeat(["no such condition"])  # counts everything anew
        assert exact(store) == kept
        list(store.records())


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Interrupts raise KeyboardInterrupt, also in a background job, which ignores them by default."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_gets_through_a_long_query(tmp_path: Path) -> None:
    with make(tmp_path, 2) as store:
        endless = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
        # A machine that is held up counts that as the statement's time; the interrupt comes first all the same.
        store._watch._seconds = 600
        threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            store._rows(endless)
        store._watch._seconds = 0.2
        with pytest.raises(StoreError, match="takes far longer"):
            store._rows(endless)
