"""Comparison of two numbers with their units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

from benchmarks.values.comparison_verdicts import (
    COUNT,
    CURRENCIES,
    NO_MAGNITUDE,
    NO_UNIT,
    PERIOD,
    RANK,
    ROUNDED,
    SAME,
    SEPARATOR,
    Comparison,
    different,
)
from benchmarks.values.numerals import Number, Reading
from benchmarks.values.question import Question
from benchmarks.values.units import PERCENT, Unit, convert_temperature, money_agrees

_HUNDREDTH = Fraction(1, 100)
_PERIODS = frozenset({"second", "minute", "hour", "day", "week", "month", "year"})
_POUND = Unit("measure", "pound", 0.45359237, "kilogram")


def compare_numbers(a: Number, b: Number, asked: Question, tolerance: float = 0.0) -> Comparison:
    """Return whether two numbers with their units are the same, within ``tolerance``, a share of the larger."""
    if "ordinal" in (a.form, b.form) and a.form != b.form:
        return RANK if a.value == b.value else different("the numbers differ")
    if a.form == b.form == "year":
        return SAME if a.value == b.value else different("the years differ")
    if _is_count(a, b) or _is_count(b, a):
        return COUNT
    readings = in_one_unit(a, b)
    if readings is None:
        return different("the units differ")
    result = _readings(*readings, tolerance)
    if a.unit and b.unit:
        if result is SAME and a.unit.dimension != b.unit.dimension and a.unit.kind == b.unit.kind == "measure":
            return PERIOD
        if result is SAME and a.unit.kind == "money" and money_agrees(a.unit.name, b.unit.name) is None:
            return CURRENCIES
    elif unit := a.unit or b.unit:
        if unit == PERCENT:
            return _percent_and_bare(result, *((a, b) if a.unit else (b, a)), asked, tolerance)
        if result is SAME and not _asks_in(unit, asked):
            return NO_UNIT
    if result.verdict == "different" and (a.scaled != b.scaled or asked.magnitude):
        larger = a.scaled or (not b.scaled and abs(a.value) > abs(b.value))
        return _scaled_and_plain(result, *((a, b) if larger else (b, a)), asked, tolerance)
    return result


def _is_count(share: Number, plain: Number) -> bool:
    return share.count is not None and plain.form != "share" and plain.unit is None and share.count == plain.value


def _percent_and_bare(
    result: Comparison, percent: Number, bare: Number, asked: Question, tolerance: float
) -> Comparison:
    """Return ``result`` for a number of percent and one without a unit, which may be a share of 1."""
    if bare.form == "share":
        return result
    if result is SAME:
        return result if _asks_in(PERCENT, asked) else NO_UNIT
    shares = _readings(_times(percent, _HUNDREDTH).readings, bare.readings, tolerance)
    return NO_UNIT if result.verdict == "different" != shares.verdict else result


def _scaled_and_plain(
    result: Comparison, scaled: Number, plain: Number, asked: Question, tolerance: float
) -> Comparison:
    """Return ``result`` unless the plain number, in thousands, millions or what the question asks in, is the scaled one."""
    if abs(plain.value) >= 10**6:
        return result
    for size in [asked.magnitude] if asked.magnitude else [Fraction(1000) ** n for n in (1, 2, 3, 4)]:
        readings = in_one_unit(_times(plain, size), scaled)
        if readings and _readings(readings[0], scaled.readings, tolerance) is SAME:
            return SAME if asked.magnitude else NO_MAGNITUDE
    return result


def _times(number: Number, factor: Fraction) -> Number:
    return replace(number, readings=tuple(Reading(r.value * factor, r.step * factor) for r in number.readings))


def _asks_in(unit: Unit, asked: Question) -> bool:
    return any(
        u.kind == unit.kind and (u.name == unit.name or (unit.kind == "money" and money_agrees(u.name, unit.name)))
        for u in asked.units
    )


def in_one_unit(a: Number, b: Number) -> tuple[Sequence[Reading], Sequence[Reading]] | None:
    """Return the readings of both in one unit; None where the units cannot be of one thing."""
    left, right = a.unit, b.unit
    if left is None or right is None:
        if left == PERCENT and b.form == "share":
            a = _times(a, _HUNDREDTH)
        elif right == PERCENT and a.form == "share":
            b = _times(b, _HUNDREDTH)
        return a.readings, b.readings
    if "pound" in (left.name, right.name) and {left.kind, right.kind} == {"money", "measure"}:
        left, right = (_POUND if u.name == "pound" else u for u in (left, right))
    if left.kind == right.kind == "measure" and _per_time(left, right):
        return a.readings, b.readings
    if (left.kind != right.kind and left.dimension != "dimensionless") or left.dimension != right.dimension:
        return None
    if left.kind == "money" and money_agrees(left.name, right.name) is False:
        return None
    if left.kind == "temperature":
        return a.readings, [Reading(convert_temperature(r.value, right.name, left.name), r.step) for r in b.readings]
    if left.kind == "measure" and left.name == right.name:
        return a.readings, b.readings
    return _times(a, Fraction(repr(left.size))).readings, _times(b, Fraction(repr(right.size))).readings


def _per_time(a: Unit, b: Unit) -> bool:
    """Return whether one unit is the other per day or the like."""
    shorter, longer = sorted((a.name, b.name), key=len)
    return longer.startswith(f"{shorter} / ") and longer.rpartition(" ")[2] in _PERIODS


def _readings(a: Sequence[Reading], b: Sequence[Reading], tolerance: float) -> Comparison:
    equal = [(x, y) for x, y in product(a, b) if _equal(x.value, y.value, tolerance)]
    if equal:
        return SAME if len(equal) == max(len(a), len(b)) else SEPARATOR
    rounded = any(_rounds(x, y) or _rounds(y, x) for x, y in product(a, b))
    return ROUNDED if rounded else different("the numbers differ")


def _equal(a: Fraction, b: Fraction, tolerance: float) -> bool:
    if tolerance <= 0 and a.denominator == b.denominator == 1:
        return a == b
    return abs(a - b) <= max(abs(a), abs(b)) * Fraction(max(tolerance, 1e-12))


def _rounds(exact: Reading, rounded: Reading) -> bool:
    """Return whether one number is the other in fewer digits."""
    finer = exact.step < rounded.step
    return finer and abs(exact.value - rounded.value) < rounded.step / 2 and abs(rounded.value) >= rounded.step
