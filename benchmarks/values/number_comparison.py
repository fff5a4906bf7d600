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
from benchmarks.values.question_facts import Question
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
    if PERCENT in (a.unit, b.unit) and None in (a.unit, b.unit):
        return _percent_and_bare(result, *((a, b) if a.unit else (b, a)), asked, tolerance)
    if result is SAME:
        return _unit_doubt(a.unit, b.unit, asked) or SAME
    if result.verdict == "different" and (a.scaled != b.scaled or asked.magnitude):
        larger = a.scaled or (not b.scaled and abs(a.value) > abs(b.value))
        return _scaled_and_plain(result, *((a, b) if larger else (b, a)), asked, tolerance)
    return result


def _unit_doubt(a: Unit | None, b: Unit | None, asked: Question) -> Comparison | None:
    """Return why two equal numbers may differ by their units; None if they do not."""
    if a is None or b is None:
        unit = a or b
        return None if unit is None or _asks_in(unit, asked) else NO_UNIT
    if a.dimension != b.dimension and a.kind == b.kind == "measure":
        return PERIOD
    return CURRENCIES if a.kind == "money" and money_agrees(a.name, b.name) is None else None


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
        return _share_readings(a, b), _share_readings(b, a)
    if "pound" in (left.name, right.name) and {left.kind, right.kind} == {"money", "measure"}:
        left, right = (_POUND if u.name == "pound" else u for u in (left, right))
    if left.kind == right.kind == "measure" and (left.name == right.name or _per_time(left, right)):
        return a.readings, b.readings
    if not _may_measure_one_thing(left, right):
        return None
    if left.kind == "temperature":
        return a.readings, [Reading(convert_temperature(r.value, right.name, left.name), r.step) for r in b.readings]
    return _times(a, Fraction(repr(left.size))).readings, _times(b, Fraction(repr(right.size))).readings


def _share_readings(number: Number, other: Number) -> Sequence[Reading]:
    """Return the readings of a number beside another, one of them without a unit: percent beside a share is a share."""
    is_percent = number.unit == PERCENT and other.form == "share"
    return _times(number, _HUNDREDTH).readings if is_percent else number.readings


def _may_measure_one_thing(a: Unit, b: Unit) -> bool:
    """Return whether a number in one unit may be converted to the other."""
    if a.dimension != b.dimension or (a.kind != b.kind and a.dimension != "dimensionless"):
        return False
    return a.kind != "money" or money_agrees(a.name, b.name) is not False


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
