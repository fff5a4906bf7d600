"""Numbers in a text: their value, unit, form and place."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.values.clean_text import clean
from benchmarks.values.numerals import Number, find_numbers


def read(text: str) -> list[Number]:
    return find_numbers(clean(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234,567.5", "1234567.5"),
        ("1.234.567,5", "1234567.5"),
        ("12,34,567", "1234567"),
        (".5", "0.5"),
        ("-3", "-3"),
        ("minus 3", "-3"),
        ("($3)", "3"),
        ("4 × 10³", "4000"),
        ("1.2e-3", "0.0012"),
        ("9.5k", "9500"),
        ("3,5 Mrd.", "3500000000"),
        ("2 lakh", "200000"),
        ("3万", "30000"),
        ("two hundred and five", "205"),
        ("one million two hundred thousand", "1200000"),
        ("nineteen eighty-four", "1984"),
        ("twenty twenty", "2020"),
        ("a dozen", "12"),
        ("half", "1/2"),
        ("three-fourths", "3/4"),
        ("2 1/2", "5/2"),
        ("3 out of 4", "3/4"),
        ("1 h 30 min", "3/2"),
        ("first", "1"),
    ],
)
def test_text_is_one_number(text: str, value: str) -> None:
    numbers = read(text)
    assert [number.value for number in numbers] == [Fraction(value)]


@pytest.mark.parametrize("text", ["", "kale", "1/0", "1.2.3", "12,3,4", "five six", "1" * 421, "fıve"])
def test_text_has_no_number(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("2014", "year"),
        ("2,014", ""),
        ("2014 km", ""),
        ("3/4", "share"),
        ("12 of 30", "share"),
        ("3rd", "ordinal"),
        ("1920s", "decade"),
    ],
)
def test_form_says_how_a_number_is_written(text: str, form: str) -> None:
    assert [number.form for number in read(text)] == [form]


def test_share_keeps_its_count() -> None:
    assert read("12 of 30")[0].count == 12
    assert [number.value for number in read("3 in 2014")] == [3, 2014]


@pytest.mark.parametrize(
    ("text", "values"),
    [("13.500", [Fraction(27, 2), 13500]), ("$13.500", [13500]), ("13,500", [13500]), ("1.35", [1.35])],
)
def test_readings_are_several_only_where_context_must_tell(text: str, values: list[float]) -> None:
    assert [float(reading.value) for reading in read(text)[0].readings] == [float(value) for value in values]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("5 km", "kilometer"),
        ("5km", "kilometer"),
        ("5-km", "kilometer"),
        ("324m", "meter"),
        ("5t", "metric_ton"),
        ("$5", "$"),
        ("USD 5", "USD"),
        ("5 million euros", "EUR"),
        ("a total of 5 of dollars", "$"),
        ("5%", "%"),
        ("5 in Rome", None),
        ("5 a day", None),
        ("5 people", None),
        ("5 (km)", None),
    ],
)
def test_unit_stands_beside_its_number(text: str, name: str | None) -> None:
    (number,) = read(text)
    assert (number.unit.name if number.unit else None) == name


def test_a_sign_between_two_numbers_is_that_of_the_second() -> None:
    assert [(n.unit.name if n.unit else None, n.start, n.end) for n in find_numbers("3 $5")] == [
        (None, 0, 1),
        ("$", 2, 4),
    ]


@given(st.text(), st.integers(0, 10**9), st.text())
@example("", 0, "$0")
def test_places_are_in_order_and_hold_digits_or_words(before: str, n: int, after: str) -> None:
    text = clean(f"{before} {n} {after}")
    ends = [0, *(place for number in find_numbers(text) for place in (number.start, number.end))]
    assert ends == sorted(ends)
    assert ends[-1] <= len(text)


def test_many_number_words_do_not_nest() -> None:
    assert read("nineteen " * 5_000) == []
