"""Features of a question that bear on the value that answers it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.values.question_facts import parse_options, read_question


def test_units_magnitude_and_years_are_read() -> None:
    question = read_question("How many euros, in million, did they spend on 3 March 2014?")
    assert [unit.name for unit in question.units] == ["EUR"]
    assert (question.magnitude, question.years) == (Fraction(10**6), frozenset({2014}))
    assert [unit.kind for unit in read_question("What share of users churned?").units] == ["percent"]
    assert [unit.name for unit in read_question("What is the length in km?").units] == ["kilometer"]


@pytest.mark.parametrize(
    ("question", "polar", "ordered"),
    [
        ("Is the bar red?", True, False),
        ("Which bar is red?", False, False),
        ("Rank the bars from highest to lowest.", False, True),
        ("List the crops in descending order.", False, True),
        ("Which crop leads first, and which one then?", False, True),
        ("Name both, the lowest to the highest.", False, True),
        ("Which two were sold in order to save money?", False, False),
        ("Which two goods does the purchase order name?", False, False),
    ],
)
def test_form_of_the_question(question: str, polar: bool, ordered: bool) -> None:
    features = read_question(question)
    assert (features.polar, features.ordered) == (polar, ordered)


@pytest.mark.parametrize(
    "question",
    [
        "What comes next? A) Egg B) Larva",
        "What comes next?\n(A) Egg\n(B) Larva",
        "What comes next?\nA. Egg\nB. Larva",
        "What comes next?\n**A.** Egg\n**B.** Larva",
    ],
)
def test_options_are_read_in_every_form(question: str) -> None:
    assert dict(parse_options(question)) == {"A": "Egg", "B": "Larva"}


@pytest.mark.parametrize("question", ["", "Who is Mr. A. Smith?", "A) Egg", "B) Egg C) Larva", "A) B)"])
def test_question_without_options_has_none(question: str) -> None:
    assert parse_options(question) == {}


@given(st.text(st.characters()))
def test_any_question_is_read(text: str) -> None:
    question = read_question(text)
    assert all(question.options.values())
