"""Comparisons where empty answers are wrong by the benchmark's declaration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.compare.comparison_headline import headlines
from app.compare.comparison_tables import Comparison, compare_views
from app.compare.runs.run_view import RunView, RunViews
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Estimate, Table
from tests.support.compared_runs import side, sides

QUESTION = "mc-conflicting"
RIGHT, WRONG = "CONFLICT", "IMAGE"


def run(name: str, outcomes: str, **more: Any) -> RunView:
    """A run of CLASH of one answer an example: right, wrong, empty or an error, by its first letter."""
    names = {"r": RIGHT, "w": WRONG, "e": "unparsed", "x": "error"}
    return side(name, {(str(number), QUESTION): names[letter] for number, letter in enumerate(outcomes)}, **more)


def compared(*runs: RunView) -> Comparison:
    return compare_views(RunViews(get_benchmark("clash"), "strict@1", runs, seed=0), resamples=50)


def notes(table: Table) -> str:
    return " ".join(table.notes)


def named(comparison: Comparison, name: str) -> Table:
    return next(table for table in comparison.tables if table.name == name)


def test_the_first_lines_name_the_empty_answers_among_those_that_count() -> None:
    (line,) = headlines(compared(run("a", "rrrrrwwwwe"), run("b", "rrreexwwww")))
    assert "b is right on 33.3% of the 9 answers that count in both, a on 55.6%" in line
    assert "labelled" not in line
    assert "1 of a, 2 of b" in line


def test_an_empty_answer_counts_that_faces_an_error_in_neither_run() -> None:
    (line,) = headlines(compared(run("a", "rrrrrwwwwe"), run("b", "rrrrrwwwwx")))
    assert "of the 9 answers that count in both" in line
    assert "empty" not in line.casefold()
    assert "b lacks 1 of 10 answers (in error)" in line


def test_without_empty_answers_all_that_count_are_labelled() -> None:
    comparison = compared(run("a", "rrrrrwwwww"), run("b", "rrrwwxwwww"))
    (line,) = headlines(comparison)
    assert "of the 9 answers that count in both" in line
    assert "labelled in both" in notes(named(comparison, "differences"))


def test_notes_say_that_empty_answers_count() -> None:
    first, second = run("a", "rrrrrwwwwe", identity={"protocol": "direct"}), run("b", "rrreexwwww")
    comparison = compared(first, replace(second, identity={**second.identity, "protocol": "verify"}))
    for name in ("values", "differences", "remedies"):
        text = notes(named(comparison, name))
        assert "empty ones as INCORRECT" in text, name
        assert "labelled in both" not in text, name
        assert "all its labelled answers" not in text, name
    cell = dict(named(comparison, "differences").rows)["b / Incorrect, multiple choice"]
    assert cell[3] == 9
    assert isinstance(cell[1], Estimate)
    assert cell[1].value == 2 / 9
    # Agreement is of labels alone.
    assert dict(named(comparison, "changes").rows)[f"b / {QUESTION}"][1] == 6
    assert "labelled in both runs" in notes(named(comparison, "changes"))


def test_a_benchmark_that_leaves_empty_answers_out_says_labelled() -> None:
    first = side("a", {(str(n), "aligned"): "IMAGE" if n < 8 else "unparsed" for n in range(10)})
    second = side("b", {(str(n), "aligned"): "IMAGE" if n < 4 else "NEITHER" for n in range(10)})
    comparison = compare_views(sides(first, second), resamples=50)
    (line,) = headlines(comparison)
    assert "of the 8 answers that count in both" in line
    assert "a lacks 2 of 10 answers" in line
    assert "labelled in both" in notes(named(comparison, "differences"))
