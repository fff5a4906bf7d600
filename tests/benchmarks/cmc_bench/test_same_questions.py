"""Rows that ask the same question about the same picture: the work grows with their number, whatever they answer."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import pytest

from benchmarks.cmc_bench.construction import same_questions
from benchmarks.cmc_bench.construction.same_questions import CONTRADICTORY, REPEATED_ROW, SameQuestions
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.values import compare
from benchmarks.values.comparison_verdicts import Comparison

_ROWS = 1_500


def _row(number: int, answer: str) -> SourceRow:
    return SourceRow("own", f"t.csv:{number}", "chartqa", "What is the value of kale?", answer, lambda: b"")


def _seconds(answer: Callable[[int], str], count: int) -> float:
    """Return the processor time to add rows, the least of three times."""

    def once() -> float:
        same = SameQuestions()
        start = process_time()
        for number in range(count):
            same.add(number, "pixels", _row(number, answer(number)))
        return process_time() - start

    return min(once() for _ in range(3))


@pytest.mark.parametrize("answer", [lambda _: "43", str], ids=["equal", "contradicting"])
def test_twice_the_rows_take_twice_the_time(answer: Callable[[int], str]) -> None:
    assert _seconds(answer, 2 * _ROWS) < 3 * _seconds(answer, _ROWS)


def test_a_contradicting_row_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def counted(first: str, second: str, question: str) -> Comparison:
        compared.append(first)
        return compare(first, second, question)

    monkeypatch.setattr(same_questions, "compare", counted)
    same = SameQuestions()
    for number in range(200):
        same.add(number, "pixels", _row(number, str(number)))
    assert len(compared) < 2 * 200


def test_rows_are_named_with_the_first_that_they_repeat_or_contradict() -> None:
    same = SameQuestions()
    for number, answer in enumerate(["43", "44", "44", "43", "45"]):
        same.add(number, "pixels", _row(number, answer))
    problems = [same.problem(number) or "" for number in range(5)]
    assert problems[0] == problems[1]
    assert "t.csv:0 says '43', t.csv:1 says '44'" in problems[0]
    assert "t.csv:0 says '43', t.csv:2 says '44'" in problems[2]
    assert problems[3].startswith(REPEATED_ROW)
    assert problems[4].startswith(CONTRADICTORY)
