"""Question sets: the third that is held out, over many edits of the table."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store.question_set_changes import compare_builds
from app.store.question_set_writer import building, record_version
from app.store.question_sets import QuestionSet
from benchmarks.build import Build, BuildOptions
from benchmarks.registry import get_benchmark
from tests.support.data.small import picture

Row = tuple[int, int, int, str]
"""The numbers of its picture, its question and its answer, and its document."""


class Table:
    """A table of rows that is edited, and built as a set of a workspace."""

    def __init__(self, folder: Path, rows: list[Row]) -> None:
        self.folder, self.rows = folder, rows

    def build(self, workspace: Path, seed: int = 0) -> QuestionSet:
        for number in {row[0] for row in self.rows}:
            (self.folder / f"{number}.png").write_bytes(picture(number))
        lines = [f"{n}.png,How many of kind {kind}?,{answer},{document}" for n, kind, answer, document in self.rows]
        (self.folder / "rows.csv").write_text("\n".join(["image,question,answer,document", *lines]) + "\n", "utf-8")
        with building(workspace, "rows") as out:
            sources = [("rows", str(self.folder / "rows.csv"))]
            build = get_benchmark("cmc-bench").build(sources, out, BuildOptions(replace=True))
            return record_version(workspace, "rows", build, table="rows.csv", seed=seed)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Return the folder of a table and that of a workspace."""
    (tmp_path / "table").mkdir()
    return tmp_path / "table", tmp_path / "workspace"


def clusters(question_set: QuestionSet, table: Table) -> Iterator[frozenset[str]]:
    """Yield the examples of each document, or of each picture without one, in the newest version."""
    benchmark = get_benchmark("cmc-bench")
    groups: dict[str, set[str]] = {}
    build = Build.open(question_set.latest.build)
    for instance in benchmark.instances(build, "paper"):
        if instance.condition == "aligned":
            groups.setdefault(benchmark.pages(instance).own[0], set()).add(instance.group)
    return map(frozenset, groups.values())


def test_a_third_of_the_documents_is_held_out_whole(places: tuple[Path, Path]) -> None:
    table = Table(places[0], [(n, n % 3, 20 + 7 * n, f"report {n // 2}") for n in range(24)])
    question_set = table.build(places[1])
    final = question_set.final_examples(Build.open(question_set.latest.build))
    held_out = [cluster for cluster in clusters(question_set, table) if cluster & final]
    assert len(held_out) == 4
    assert frozenset().union(*held_out) == final, "a document is held out with all of its rows"


@pytest.mark.parametrize(("rows", "held_out"), [(1, 0), (2, 1), (3, 1), (4, 1), (9, 3)])
def test_small_sets_hold_out_the_nearest_number(places: tuple[Path, Path], rows: int, held_out: int) -> None:
    table = Table(places[0], [(n, 0, 20 + 7 * n, "") for n in range(rows)])
    question_set = table.build(places[1])
    assert len(question_set.final_examples(Build.open(question_set.latest.build))) == held_out


def test_another_seed_holds_out_others(places: tuple[Path, Path]) -> None:
    table = Table(places[0], [(n, n % 3, 20 + 7 * n, "") for n in range(12)])
    parts = {tuple(sorted(table.build(places[1] / str(seed), seed).final_pages.items())) for seed in range(5)}
    assert len(parts) > 1
    again = table.build(places[1] / "again", 3).final_pages
    assert tuple(sorted(again.items())) in parts


@pytest.mark.parametrize("seed", range(3))
def test_no_edit_holds_out_what_may_have_been_asked(places: tuple[Path, Path], seed: int) -> None:
    numbers = random.Random(seed)
    table = Table(places[0], [(n, n % 3, 20 + 7 * n, f"report {n // 2}") for n in range(12)])
    known, fresh = table.build(places[1]).final_pages, 12
    for _ in range(12):
        match numbers.choice(["add", "add", "remove", "answer", "picture", "join"]):
            case "add":
                table.rows.append((fresh, fresh % 3, 20 + 7 * fresh, f"report {numbers.randrange(20)}"))
                fresh += 1
            case "remove" if len(table.rows) > 6:
                table.rows.pop(numbers.randrange(len(table.rows)))
            case "picture":
                place = numbers.randrange(len(table.rows))
                table.rows[place] = (fresh, *table.rows[place][1:])
                fresh += 1
            case "join":
                place = numbers.randrange(len(table.rows))
                table.rows[place] = (*table.rows[place][:3], f"report {numbers.randrange(8)}")
            case _:
                place = numbers.randrange(len(table.rows))
                picture_, kind, answer, document = table.rows[place]
                table.rows[place] = (picture_, kind, answer + 1, document)
        question_set = table.build(places[1])
        parts = question_set.final_pages
        assert parts.keys() >= known.keys(), "what is held out is remembered, even of rows that were removed"
        assert not [page for page, final in known.items() if parts[page] and not final]
        final = question_set.final_examples(Build.open(question_set.latest.build))
        assert all(cluster <= final or not cluster & final for cluster in clusters(question_set, table))
        known = parts


@pytest.mark.parametrize("seed", range(3))
def test_random_edits_are_counted_row_by_row(places: tuple[Path, Path], seed: int) -> None:
    numbers = random.Random(seed)
    table = Table(places[0], [(n, n % 3, 20 + 7 * n, "") for n in range(12)])
    table.build(places[1])
    for fresh in range(20, 26):
        before = list(table.rows)
        places_ = numbers.sample(range(len(before)), 3)
        changed, removed = places_[:2], places_[2]
        for place in changed:
            picture_, kind, answer, document = before[place]
            table.rows[place] = (picture_, kind, answer + 1, document)
        del table.rows[removed]
        table.rows.insert(numbers.randrange(len(table.rows)), (fresh, 7, 500 + fresh, ""))
        older, newer = (Build.open(version.build) for version in table.build(places[1]).versions[-2:])
        changes = compare_builds(older, newer)
        assert [row.cells["question"] for row in changes.added] == ["How many of kind 7?"]
        assert [row.row for row in changes.removed] == [f"rows.csv:{removed + 2}"]
        answers = sorted(before[place][2] for place in changed)
        pairs = [(int(old.cells["answer"]), int(new.cells["answer"])) for old, new in changes.changed]
        assert sorted(pairs) == [(answer, answer + 1) for answer in answers]
        lines = [int(new.row.partition(":")[2]) for _, new in changes.changed]
        assert lines == sorted(lines), "in the order of the table"
        assert changes.same_instances < changes.instances
