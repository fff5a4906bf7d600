"""Distribution of generated contradicting values: their origins, and how far numbers are from the right ones."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Any

from benchmarks.cmc_bench.construction.borrowed_answers import SCOPES
from benchmarks.cmc_bench.construction.constructed_examples import ConstructedExample
from benchmarks.cmc_bench.construction.contradiction_pairing import MADE, NAMED, OWN_OPTION
from benchmarks.cmc_bench.construction.written_number import read_number
from benchmarks.cmc_bench.sources.cmc_source_row import OWN_ROWS

_ORIGINS = (*SCOPES, OWN_OPTION, NAMED, MADE)


def generated_values(examples: Iterable[ConstructedExample], *, of_all: bool = False) -> dict[str, Any]:
    """Return the facts of the values generated for the user's own rows, or ``of_all`` rows; empty if there are none.

    They are the number of values by origin, of rows without one by reason, and of numbers the quartiles of the ratio of wrong
    to right, and the shares that have the unit of the right one and that are within a factor of three.
    """
    origins: Counter[str] = Counter()
    none: Counter[str] = Counter()
    ratios, same_unit = array("d"), 0
    for example in examples:
        row = example.right.row
        if example.right.is_conflict or not (of_all or row.source == OWN_ROWS):
            continue
        if not example.value:
            none[example.left_out.get("image-correct", "")] += 1
        elif example.origin in _ORIGINS:
            origins[example.origin] += 1
            right, wrong = read_number(row.answer), read_number(example.value)
            if right and wrong and right.units and wrong.units and example.right.coarse != "year":
                ratios.append(wrong.value / right.value)
                same_unit += right.surroundings == wrong.surroundings
    facts: dict[str, Any] = {origin: origins[origin] for origin in _ORIGINS if origins[origin]}
    if none:
        facts["none"] = dict(none)
    if ratios:
        ordered = sorted(ratios)
        facts["numbers"] = {
            "count": len(ordered),
            "wrong/right quartiles": [round(ordered[len(ordered) * part // 4], 2) for part in (1, 2, 3)],
            "same unit": round(same_unit / len(ordered), 3),
            "within a factor of 3": round(sum(1 / 3.001 <= r <= 3.001 for r in ordered) / len(ordered), 3),
        }
    return facts


def describe(facts: dict[str, Any]) -> list[str]:
    """Return :func:`generated_values` as a phrase on the values and one on the numbers among them."""
    counts = [f"{count} {origin}" for origin, count in facts.items() if origin in _ORIGINS]
    counts += [f"{count} without one ({reason})" for reason, count in facts.get("none", {}).items()]
    phrases = [f"wrong values: {', '.join(counts)}"] if counts else []
    if numbers := facts.get("numbers"):
        low, middle, high = numbers["wrong/right quartiles"]
        phrases.append(
            f"{numbers['count']} wrong numbers: {low} to {high} times the right one for half of them (median {middle}), "
            f"{numbers['same unit']:.0%} in its unit, {numbers['within a factor of 3']:.0%} within a factor of 3"
        )
    return phrases
