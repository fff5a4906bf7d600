"""The kind of value that a short text is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.values.dates_and_times import Moment
from benchmarks.values.parse_value import Amount, Listing, Polarity, Span, Words, parse


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Yes.", Polarity),
        ("no, it fell", Polarity),
        ("No change", Words),
        ("43", Amount),
        ("about 43 people", Amount),
        ("The answer", Words),
        ("7 UP", Words),
        ("2 Fast 2 Furious", Words),
        ("12 March", Moment),
        ("Monday, 12 March 2020", Moment),
        ("2014-2017", Span),
        ("2020/21", Span),
        ("between 5 and 10 km", Span),
        ("Jan-Mar", Span),
        ("5 and 10", Listing),
        ("rye, kale; oats", Listing),
        ("Jane Smith", Words),
        ("", Words),
    ],
)
def test_text_is_a_value_of_its_kind(text: str, kind: type) -> None:
    assert type(parse(text)) is kind


def test_yes_that_goes_on_is_marked() -> None:
    assert parse("Yes, it did") == Polarity(True)
    assert parse("no, it rose by 5") == Polarity(False, True)


def test_amount_has_its_noun_and_its_bound() -> None:
    amount = parse("more than 200 people")
    assert isinstance(amount, Amount)
    assert (amount.noun, amount.bound) == (("person",), "more than")
    older = parse("65+")
    assert isinstance(older, Amount)
    assert older.bound == "+"


def test_range_shares_its_unit_and_its_year() -> None:
    span, days = parse("5-10 km"), parse("3 March to 5 April 2014")
    assert isinstance(span, Span)
    assert isinstance(span.low, Amount)
    assert span.low.number.unit is not None
    assert isinstance(days, Span)
    assert isinstance(days.low, Moment)
    assert days.low.readings == ((2014, 3, 3),)


@pytest.mark.parametrize(
    ("text", "country"), [("Deutschland", "DE"), ("Great Britain", "GB"), ("日本", "JP"), ("Leeds", "")]
)
def test_country_is_known_by_every_name(text: str, country: str) -> None:
    words = parse(text)
    assert isinstance(words, Words)
    assert words.country == country


@given(st.text(st.characters()))
def test_every_text_is_a_value_and_always_the_same(text: str) -> None:
    value = parse(text)
    parse.cache_clear()
    assert parse(text) == value
