"""Ranges of numbers: what each holds, and how it is written."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from benchmarks import number_ranges as ranges
from benchmarks.errors import SpecError
from benchmarks.number_ranges import NumberRange

ALL = {name: value for name, value in vars(ranges).items() if isinstance(value, NumberRange)}
NEVER: tuple[Any, ...] = (
    float("nan"),
    float("inf"),
    -float("inf"),
    -1,
    10**30,
    10**5000,
    True,
    "8",
    None,
    1j,
    Decimal(8),
)


@pytest.mark.parametrize("name", ALL)
def test_no_range_holds_what_is_no_finite_number_of_any_use(name: str) -> None:
    for value in NEVER:
        assert not ALL[name].holds(value), value
        if value is not None:
            with pytest.raises(SpecError, match="key"):
                ALL[name].check("key", value)
    ALL[name].check("key", None)
    assert not (ALL[name].whole and ALL[name].holds(ALL[name].high - 0.5))


@pytest.mark.parametrize(
    ("of", "held", "beyond", "words"),
    [
        (ranges.MAX_TOKENS, (1, 1_000_000, np.int64(7)), (0, 1_000_001, 2.0), "a whole number from 1 to 1,000,000"),
        (ranges.TOP_P, (0.1, 1, 1.0), (0, 1.01), "a number above 0 to 1"),
        (ranges.MARGIN, (0.03,), (0, 1, 0.0), "a number above 0 and below 1"),
        (ranges.DROPOUT, (0, 0.5), (1,), "a number from 0 below 1"),
        (ranges.KV_BITS, (8, 4), (5, 16), "8 or 4"),
        (ranges.WEIGHT_BITS, (2, 6), (5, 7), "2, 3, 4, 6 or 8"),
    ],
)
def test_a_range_ends_where_it_says(of: NumberRange, held: Any, beyond: Any, words: str) -> None:
    assert all(map(of.holds, held))
    assert not any(map(of.holds, beyond))
    assert str(of) == words


def test_what_an_earlier_release_stored_is_held() -> None:
    assert ranges.MAX_TOKENS.holds(10**12, stored=True)
    assert not ranges.MAX_TOKENS.holds(0, stored=True), "that was refused then, too"
    assert ranges.SEED.holds(-3, stored=True)
    assert not ranges.CONCURRENCY.holds(257, stored=True)
    assert not ranges.SEED.holds(True, stored=True)
