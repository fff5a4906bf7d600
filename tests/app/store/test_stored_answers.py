"""Answers as tables count them: the same as from records, in little memory, and nothing damaged unnoticed."""

from __future__ import annotations

import sqlite3
import tracemalloc
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.store.parsed_texts import ParsedTexts
from app.store.run_database import DATABASE
from app.store.run_store import RunStore
from app.store.sqlite_errors import DamagedError
from app.store.stored_answers import KnownInstance, read_answers
from app.store.workspace import Workspace
from benchmarks.answers import Answers
from benchmarks.cmc_bench import CMCBench
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Instance, Record, Text
from tests.support.runs import instances, make_run, says

TEXTS = {("stop", False): 120, ("error", True): 60, ("stop", True): 60}
"""The answers by the end of their generation, and whether they are empty."""


def mixed(instance: Instance) -> Generation:
    """An answer, an error, nothing but reasoning, or an answer after reasoning."""
    number = sum(instance.id.encode()) % 4
    text = ("12", "", "<think>12", "<THINK>15</THINK> 12")[number]
    return Generation(
        f"{instance.id}#0",
        text,
        "error" if number == 1 else "stop",
        (1,),
        3,
        1,
        0.1,
        0.2,
        10**9,
        "it broke" * (number == 1),
    )


def read(folder: Path, known: ParsedTexts[KnownInstance] | None = None) -> Answers:
    with RunStore.read(folder) as store:
        return read_answers(store, CMCBench(), known)


def records(folder: Path) -> list[Record]:
    with RunStore.read(folder) as store:
        return list(store.records())


def test_answers_from_a_store_are_those_of_its_records(tmp_path: Path) -> None:
    folder = make_run(Workspace(tmp_path), "a-run", instances(40), mixed, failing=lambda i: i.id.endswith("7/aligned"))
    expected, benchmark = Answers.of(records(folder), CMCBench()), get_benchmark("cmc-bench")
    known = ParsedTexts[KnownInstance]()
    for answers in (read(folder), read(folder, known), read(folder, known)):
        assert answers.kinds == expected.kinds
        assert answers.kind.tolist() == expected.kind.tolist()
        assert answers.group.tolist() == expected.group.tolist()
        assert answers.count(lambda kind: (kind.finish_reason, kind.is_empty)) == TEXTS
        assert benchmark.tables({"run": answers}, "match@4", resamples=50, seed=0) == benchmark.tables(
            {"run": expected}, "match@4", resamples=50, seed=0
        )
        assert list(answers.read([3, 17])) == [records(folder)[position] for position in (3, 17)]
        assert list(answers.read([])) == []


def test_questions_with_more_options_are_of_another_kind(tmp_path: Path) -> None:
    benchmark = get_benchmark("crosscheck-bench")
    items = [
        Instance(f"{n}/vanilla", str(n), "vanilla", "?", (), {"answer": ("1",), "options": tuple("1234"[:n])})
        for n in (2, 3, 4)
    ]
    folder = make_run(Workspace(tmp_path), "a-run", items, says("A"), benchmark=benchmark)
    with RunStore.read(folder) as store:
        answers = read_answers(store, benchmark)
    assert [answers.kinds[kind].instance.choices for kind in answers.kind] == [2, 3, 4]


def test_a_shared_instance_that_is_altered_in_one_run_is_named(tmp_path: Path) -> None:
    folders = [make_run(Workspace(tmp_path), name, instances(3), says("12")) for name in ("one", "two")]
    with closing(sqlite3.connect(folders[1] / DATABASE)) as database:
        database.execute("UPDATE instance SET body = replace(body, 'trams', 'buses') WHERE ordinal = 4")
        database.commit()
    known = ParsedTexts[KnownInstance]()
    read(folders[0], known)
    with pytest.raises(DamagedError, match="table instance, row 4"):
        read(folders[1], known)


@pytest.mark.slow
def test_answers_hold_no_texts(tmp_path: Path) -> None:
    items = [replace(item, parts=(Text(f"{item.id} " * 500),)) for item in instances(300)]
    folder = make_run(Workspace(tmp_path), "a-run", items, says("It is 12. " * 300), failing=lambda instance: True)
    read(folder)  # imports
    tracemalloc.start()
    answers = read(folder)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(answers) == 1800
    assert size < 100 * len(answers)
