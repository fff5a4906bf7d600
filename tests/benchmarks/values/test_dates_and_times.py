"""Dates, quarters, decades and times of day."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.values.clean_text import clean, fold
from benchmarks.values.dates_and_times import Moment, Parts, find_moments


def read(text: str) -> list[Moment]:
    return find_moments(fold(clean(text)))


@pytest.mark.parametrize(
    ("text", "kind", "readings"),
    [
        ("2014-03-05", "date", {(2014, 3, 5)}),
        ("2014.03.05", "date", {(2014, 3, 5)}),
        ("5.3.14", "date", {(2014, 3, 5)}),
        ("5/3/1999", "date", {(1999, 3, 5), (1999, 5, 3)}),
        ("13/4/2020", "date", {(2020, 4, 13)}),
        ("2014-03", "date", {(2014, 3, None)}),
        ("March 2014", "date", {(2014, 3, None)}),
        ("3rd of March", "date", {(None, 3, 3)}),
        ("3. März 2020", "date", {(2020, 3, 3)}),
        ("5 de marzo de 2020", "date", {(2020, 3, 5)}),
        ("May '21", "date", {(2021, 5, None)}),
        ("2020年3月5日", "date", {(2020, 3, 5)}),
        ("Q3 2014", "quarter", {(2014, 4, 3)}),
        ("third quarter of 2014", "quarter", {(2014, 4, 3)}),
        ("H1 2014", "quarter", {(2014, 2, 1)}),
        ("1920s", "decade", {(19, 20)}),
        ("the nineteen-twenties", "decade", {(19, 20)}),
        ("the '20s", "decade", {(None, 20)}),
        ("15:30", "time", {(15, 30)}),
        ("3:30", "time", {(3, 30), (15, 30)}),
        ("03:30", "time", {(3, 30)}),
        ("3:30 p.m.", "time", {(15, 30)}),
        ("12 am", "time", {(0, 0)}),
        ("8.30 Uhr", "time", {(8, 30)}),
        ("15h30", "time", {(15, 30)}),
        ("noon", "time", {(12, 0)}),
        ("quarter to five", "time", {(4, 45), (16, 45)}),
    ],
)
def test_text_is_one_moment(text: str, kind: str, readings: set[Parts]) -> None:
    assert [(moment.kind, set(moment.readings)) for moment in read(text)] == [(kind, readings)]


@pytest.mark.parametrize(
    "text",
    [
        "2014.5",
        "2014-5",
        "25:61",
        "13:75",
        "13 pm",
        "5 h",
        "1.2.3.4",
        "It may rise again soon",
        "the first half",
    ],
)
def test_text_has_no_moment(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize("text", ["31.02.2013", "30 February 2013", "2月30日", "2013-02-30", "13月40日"])
def test_day_that_does_not_exist_is_none(text: str) -> None:
    assert all(parts[2] is None for moment in read(text) for parts in moment.readings)


@given(st.text())
def test_places_are_in_order_and_do_not_overlap(text: str) -> None:
    folded = fold(clean(text + " 12:30, 3 May 2014"))
    ends = [place for moment in find_moments(folded) for place in (moment.start, moment.end)]
    assert ends == sorted(ends)
