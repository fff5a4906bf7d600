"""Units at the beginning of a text, and which of them are one."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.values.units import convert_temperature, money, money_agrees, unit_at_start

TEMPERATURES = ["kelvin", "degree_Celsius", "degree_Fahrenheit"]


@pytest.mark.parametrize(
    ("text", "name", "length"),
    [
        ("% of users", "%", 1),
        ("per cent", "%", 8),
        ("km", "kilometer", 2),
        ("kilometres long", "kilometer", 10),
        ("km/h", "kilometer / hour", 4),
        ("kilometres per hour", "kilometer / hour", 19),
        ("m²", "", 0),
        ("m^2", "(meter)**2", 3),
        ("square meters", "(meter)**2", 13),
        ("°C", "degree_Celsius", 2),
        ("degrees Fahrenheit", "degree_Fahrenheit", 18),
        ("GB", "gigabyte", 2),
        ("Gb", "gigabit", 2),
        ("mW", "milliwatt", 2),
        ("MW", "megawatt", 2),
        ("€", "EUR", 1),
        ("Swiss francs", "CHF", 12),
        ("people", "", 0),
        ("dB/m", "", 0),
        ("Qm^4·Qm^4·Qm^4", "", 0),
        ("", "", 0),
    ],
)
def test_unit_and_its_length(text: str, name: str, length: int) -> None:
    unit = unit_at_start(text)
    if name or length:
        assert unit is not None
        assert (unit[0].name, unit[1]) == (name, length)


@pytest.mark.parametrize("text", ["people", "dB/m", "Qm^4·Qm^4", "", "XQZ"])
def test_other_words_are_no_unit_or_end_before_it(text: str) -> None:
    unit = unit_at_start(text)
    assert unit is None or unit[1] < len(text)


def test_cents_are_hundredths_of_a_dollar() -> None:
    cents, dollars = money("cents"), money("dollars")
    assert cents is not None
    assert dollars is not None
    assert (cents.name, cents.size) == (dollars.name, dollars.size / 100)
    assert money("XQZ") is None


@pytest.mark.parametrize(
    ("a", "b", "agrees"),
    [("EUR", "EUR", True), ("$", "USD", True), ("$", "CAD", None), ("franc", "CHF", None), ("EUR", "USD", False)],
)
def test_sign_of_several_currencies_agrees_only_perhaps(a: str, b: str, agrees: bool | None) -> None:
    assert money_agrees(a, b) is agrees
    assert money_agrees(b, a) is agrees


@given(st.fractions(-300, 5000), st.sampled_from(TEMPERATURES), st.sampled_from(TEMPERATURES))
def test_temperature_converts_there_and_back(value: Fraction, unit: str, other: str) -> None:
    assert convert_temperature(convert_temperature(value, unit, other), other, unit) == value


def test_fixed_points_of_temperature() -> None:
    assert convert_temperature(Fraction(100), "degree_Celsius", "degree_Fahrenheit") == 212
    assert convert_temperature(Fraction(0), "kelvin", "degree_Celsius") == Fraction("-273.15")
