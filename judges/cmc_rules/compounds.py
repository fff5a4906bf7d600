"""Quantities, and those written in several parts: ``2 hours 30 minutes``, ``5 ft 6 in``, ``3 1/2``, ``two and a half``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from judges.cmc_rules.units import unit_size

Kind = Literal["number", "fraction", "ordinal", "decade"]

_PART = re.compile(r"(?:,|,? and)? ?")
_MIXED, _MIXED_SPELLED = " ", " and "


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text. ``value`` excludes its magnitude; ``step`` is one unit of its last significant digit."""

    start: int
    end: int
    value: float
    step: float
    magnitude: float = 1.0
    unit: str = ""
    kind: Kind = "number"
    alternative: float | None = None
    """The value of the digits with a point for thousands, if that is another number: ``1.200``."""
    spelled: bool = False
    period: str = ""
    """The unit of time of a rate ("$99 per year"), if it is stated beside the unit."""

    @property
    def dimension(self) -> str | None:
        entry = unit_size(self.unit)
        return entry[0] if entry else None

    @property
    def looks_like_a_year(self) -> bool:
        plain = self.kind == "number" and self.magnitude == 1.0 and not self.spelled and self.dimension is None
        return plain and self.value.is_integer() and 1000 <= self.value <= 2100 and self.step >= 1.0


def join_parts(text: str, quantities: Sequence[Quantity]) -> tuple[Quantity, ...]:
    """Return the quantities of a text with the parts of one amount joined: a whole and its fraction, or descending units."""
    joined: list[Quantity] = []
    for quantity in quantities:
        whole = _whole(text, joined[-1], quantity) if joined else None
        if whole:
            joined[-1] = whole
        else:
            joined.append(quantity)
    return tuple(joined)


def _whole(text: str, first: Quantity, second: Quantity) -> Quantity | None:
    """Return the amount of which the two are parts, or None."""
    between = text[first.end : second.start]
    if first.kind != "number" or first.value < 0 or first.magnitude != 1.0:
        return None
    if second.kind == "fraction" and 0 < second.value < 1:
        separator = _MIXED_SPELLED if second.spelled else _MIXED
        units = [q.unit for q in (first, second) if q.dimension]
        if between != separator or not first.value.is_integer() or len(units) > 1:
            return None
        value, unit = first.value + second.value, units[0] if units else second.unit
        return replace(second, start=first.start, value=value, step=0.0, unit=unit, kind="number", alternative=None)
    if second.kind != "number" or second.magnitude != 1.0 or not _PART.fullmatch(between):
        return None
    minutes = second.unit == "m" and first.dimension == "time"
    larger, smaller = unit_size(first.unit), unit_size("min" if minutes else second.unit)
    if larger is None or smaller is None or larger[0] != smaller[0] or larger[1] <= smaller[1]:
        return None
    share = smaller[1] / larger[1]
    if not 0 <= second.value * share < 1:
        return None
    value = first.value + second.value * share
    return replace(first, end=second.end, value=value, step=second.step * share, alternative=None)
