"""Factors as they are named on the command line, and what is wrong with some of them."""

from __future__ import annotations

import pytest

from benchmarks.errors import SourceError, SpecError
from benchmarks.factors.factor_design import Design
from benchmarks.factors.factor_levels import KINDS, parse_factor, parse_factors
from benchmarks.varied_names import FACTOR_NAMES, example_of, in_cell


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("blur=0,2.50,4", ("0", "2.5", "4")),
        ("text-source=none,the ministry\\, in its report", ("none", "the ministry, in its report")),
        ("crop=none, 0:0:0.50:1", ("none", "0:0:0.5:1")),
        ("jpeg=none,05", ("none", "5")),
        ("distance=built,0.1,2", ("built", "0.1", "2")),
    ],
)
def test_levels_have_one_spelling(text: str, levels: tuple[str, ...]) -> None:
    assert parse_factor(text).levels == levels


@pytest.mark.parametrize(
    "text",
    [
        "",
        "blr=0,2",
        "blur",
        "blur=2",
        "blur=0,2,2.0",
        "blur=0,-1",
        "blur=0,nan",
        "blur=0,inf",
        "resolution=1,0",
        "jpeg=0,50",
        "crop=none,0:0:1.5:1",
        "crop=none,0.5:0:0.4:1",
        "crop=none,0:0:1",
        "order=image-first,sideways",
        "text-source=none,\x1b[31m",
        "text-source=none," + "x" * 81,
        "length=0,1e9",
        "blur=" + ",".join(map(str, range(60))),
    ],
)
def test_wrong_levels_are_refused(text: str) -> None:
    with pytest.raises(SpecError):
        parse_factor(text)


def test_factors_have_a_fixed_order_and_are_named_once() -> None:
    assert [factor.name for factor in parse_factors(["order=image-first,text-first", "blur=0,1"])] == ["blur", "order"]
    assert tuple(KINDS) == FACTOR_NAMES
    for texts in ([], ["blur=0,1", "blur=2,3"]):
        with pytest.raises(SpecError):
            parse_factors(texts)


def test_a_design_too_large_needs_a_fraction() -> None:
    factors = parse_factors(
        [f"{name}=0,1,2,3,4,5,6,7,8,9" for name in ("blur", "length")]
        + ["cover=0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9", "resolution=1,0.9,0.8,0.7,0.6,0.5,0.4,0.3,0.2,0.1"]
    )
    with pytest.raises(SpecError):
        Design.of(factors)
    assert len(Design.of(factors, cells=60).cells) == 60
    with pytest.raises(SpecError):  # fewer cells than effects
        Design.of(factors, cells=20)


def test_designs_survive_json_and_damaged_ones_are_refused() -> None:
    design = Design.of(parse_factors(["blur=0,1,2", "order=image-first,text-first"]), conditions=("aligned",))
    assert Design.from_json(design.to_json()) == design
    good = design.to_json()
    for damaged in (
        None,
        {},
        {**good, "cells": [[0]]},
        {**good, "cells": [[9, 0]]},
        {**good, "cells": []},
        {**good, "factors": [{"name": "blr", "levels": ["0"]}] * 2},
        {**good, "cells": 3},
    ):
        with pytest.raises(SourceError):
            Design.from_json(damaged)


def test_repetitions_name_their_example() -> None:
    assert example_of(in_cell("a~cell-x", 12)) == "a~cell-x"
    assert example_of("a~cell-x") == "a~cell-x"
    assert example_of("plain") == "plain"
