"""Counting of answers by kind and by example."""

from __future__ import annotations

from benchmarks.answers import AnswerKind, Answers, number_groups
from benchmarks.vocabulary import Record
from tests.support.labelled import answers_of, labelled

A, B = "a@1", "b@1"


def some_answers() -> tuple[list[Record], Answers]:
    records = [
        labelled({A: "IMAGE", B: "TEXT"}, id="x1", group="x"),
        labelled({A: "IMAGE", B: "TEXT"}, id="y1", group="y"),
        labelled({A: "TEXT"}, id="y2", group="y", condition="both-wrong"),
        labelled({A: "unparsed"}, id="z1", group="z", answer=" "),
        labelled({A: "IMAGE", B: "TEXT"}, id="x2", group="x"),
    ]
    return records, answers_of(records)


def test_records_that_tables_cannot_tell_apart_are_of_one_kind() -> None:
    records, answers = some_answers()
    assert len(answers.kinds) == 3
    assert answers.count(lambda kind: kind.condition) == {"aligned": 4, "both-wrong": 1}
    assert answers.count(lambda kind: kind.outcome(B)) == {"labelled": 3, "pending": 2}
    assert answers.judges == {A, B}
    for record, number in zip(records, answers.kind, strict=True):
        kind = answers.kinds[number]
        assert {kind.outcome(judge) for judge in (A, B)} == {record.outcome(judge) for judge in (A, B)}
        assert kind.condition == record.instance.condition


def test_cells_count_by_example_in_order_of_the_first_counted_answer() -> None:
    def cell(kind: AnswerKind) -> tuple[int, int] | None:
        label = kind.label(A) if kind.outcome(A) == "labelled" else ""
        return (0, ("IMAGE", "TEXT").index(label)) if label else None

    _, answers = some_answers()
    assert answers.cells((1, 2), cell).tolist() == [[[2, 0]], [[1, 1]]]
    assert answers.cells((2,), lambda kind: (0,) if kind.is_empty else None).tolist() == [[1, 0]]
    assert answers.cells((2,), lambda kind: None).shape == (0, 2)


def test_kinds_change_for_chosen_records_only() -> None:
    _, answers = some_answers()
    changed = answers.derive_at([1, 4], lambda kind: AnswerKind(kind.instance, "error"))
    assert changed.mask(lambda kind: kind.finish_reason == "error").tolist() == [False, True, False, False, True]
    assert not answers.mask(lambda kind: kind.finish_reason == "error").any()


def test_groups_are_numbered_in_order_of_first_occurrence() -> None:
    _, answers = some_answers()
    assert number_groups(answers.group[::-1])[1].tolist() == [0, 1, 2, 2, 0]
    assert number_groups(answers.group[:0])[0] == 0
