"""Answers under conflict compared with the model's own: the ratio that needs those to each source alone."""

from __future__ import annotations

import pytest

from benchmarks.answers import Answers
from benchmarks.plain import DATA_SETS
from benchmarks.plain.own_answers_table import OWN
from benchmarks.protocols.repeats import REPEAT, in_repeat
from benchmarks.vocabulary import Estimate, Instance
from judges.judge_registry import get_judge
from tests.support.data.plain import data_set_of
from tests.support.labelled import labelled

WORDS = data_set_of("words-or-vision")
JUDGE = get_judge("match").id


def answers_of(*examples: tuple[str | None, ...], repeats: int = 1) -> Answers:
    """The answers to examples: under conflict, to the image and to the text; None for an error."""
    records = [
        labelled(
            {JUDGE: "NEITHER"},
            id=in_repeat(f"{number}/{condition}", repeat),
            group=in_repeat(f"{number}", repeat),
            condition=condition,
            answer=answer or "",
            error=answer is None,
            strata={"type": "VQAv2"} | ({REPEAT: str(repeat)} if repeats > 1 else {}),
        )
        for number, answers in enumerate(examples)
        for repeat in range(1, repeats + 1)
        for condition, answer in zip(("conflict", "image-only", "text-only"), answers, strict=False)
    ]
    return Answers.of(records, WORDS)


def own_row(answers: Answers) -> dict[str, int | tuple[float | None, int]]:
    """The row of a run in the table of own answers."""
    tables = WORDS.tables({"m": answers}, JUDGE, resamples=20, seed=0)
    (table,) = (table for table in tables if table.name == "own-answers")
    cells = zip(table.columns, table.rows[0][1], strict=True)
    return {name: (cell.value, cell.n) if isinstance(cell, Estimate) else int(str(cell)) for name, cell in cells}


def test_the_ratio_counts_answers_that_equal_one_of_the_models_own() -> None:
    row = own_row(
        answers_of(
            ("Red.", "Red", "Blue"),
            ("Blue", "Red", "Blue."),
            ("blue", "Red", "Blue"),
            ("Blue", "Red", "<think>Red or blue?</think>Blue"),
            ("Red", "Red", "Red"),
            ("Green", "Red", "Blue"),
            ("Red", None, "Blue"),
            ("Red", "Red"),
            ("", "Red", "Blue"),
            (None, "Red", "Blue"),
        )
    )
    assert row["TPR"] == (2 / 3, 3)
    assert (row["answers"], row["compared"]) == (8, 6)
    assert [row[name] for name in OWN] == [(1 / 6, 6), (2 / 6, 6), (1 / 6, 6), (2 / 6, 6)]


def test_the_ratio_of_no_answer_and_of_repeats() -> None:
    row = own_row(answers_of(("Red", "Red")))
    assert (row["answers"], row["compared"], row["TPR"]) == (1, 0, (None, 0))
    assert own_row(answers_of(("Red", "Red", "Blue"), ("Blue", "Red", "Blue"), repeats=3))["TPR"] == (0.5, 6)


@pytest.mark.parametrize("name", DATA_SETS)
def test_examples_with_own_metrics_have_groups_of_their_own(name: str) -> None:
    data_set = data_set_of(name)
    assert not (data_set.own_metrics and "group" in data_set.optional_columns)
    instance = Instance("a/conflict", "a", "conflict", "?", (), {}, {})
    assert not data_set.own_metrics or {*data_set.sources_alone(instance)} == {"image", "text"}
