"""CLASH's categories beside the published ones, and what Table 8 and 9 were made of."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pytest

from benchmarks.clash.clash_categories import (
    category_stratum,
    join_categories,
    same_categories,
    shared_categories,
    split_categories,
    word_lists,
)
from benchmarks.clash.clash_constants import ATTRIBUTE_CATEGORIES, OBJECT_CATEGORIES
from benchmarks.clash.clash_predictions import read_answers
from benchmarks.clash.clash_sample import ClashSample
from benchmarks.clash.sources.clash_released import parse_published_sample, read_raw_samples
from tests.support.data.clash import MULTIPLE_CHOICE, PAPER, ROOT, TEST_FILE

real = pytest.mark.skipif(not TEST_FILE.exists(), reason="the published rows are not here")

FLASH_LITE = {  # Tables 8 and 9, Gemini 2.5 Flash Lite: percent and deviation
    "object": {
        "animals": (8.25, 2.28),
        "transportation": (6.12, 2.90),
        "food": (10.36, 3.38),
        "sports": (3.37, 1.91),
        "household": (10.58, 2.60),
        "other": (4.84, 2.10),
    },
    "attribute": {
        "colors": (9.42, 1.66),
        "numbers": (4.42, 1.47),
        "materials": (6.78, 3.24),
        "physical": (20.96, 9.44),
        "environmental": (8.63, 7.99),
        "other": (10.15, 5.57),
    },
}


def _samples() -> list[ClashSample]:
    return [parse_published_sample(row) for row in read_raw_samples(TEST_FILE) or ()]


@pytest.mark.skipif(not PAPER.exists(), reason="the paper is not here")
def test_the_lists_are_the_printed_ones_misprints_included() -> None:
    text = PAPER.read_text("utf-8")
    start = text.index("Appendix D Object Categories", text.index("Appendix C Experiments"))
    appendix = text[start : text.index("Appendix F Qualitative", start)]
    printed = [
        [word.strip() for word in line.split(":", 1)[1].split(",")]
        for line in appendix.splitlines()
        if line.lstrip().startswith("•")
    ]
    shipped = json.loads((ROOT / "benchmarks" / "clash" / "categories.json").read_text("utf-8"))
    assert [words for kinds in shipped.values() for lists in kinds.values() for words in lists.values()] == printed


def test_a_category_needs_both_words() -> None:
    assert shared_categories("object", "dog", "cat") == ("animals",)
    assert shared_categories("object", "dog", "pizza") == ("other",)
    assert shared_categories("object", "Knif ", "PLATE") == ("household",)
    assert shared_categories("object", "skateboard", "bicycle") == ("transportation", "sports")
    assert shared_categories("attribute", "dog", "cat") == ("other",)
    assert shared_categories("attribute", "wet", "dry") == ("physical", "environmental")
    assert shared_categories("attribute", "dry", "green") == ("environmental",)
    assert shared_categories("spatial", "left", "right") == ()
    assert shared_categories("object", "", "\ud800") == ("other",)


def test_several_categories_are_one_word_and_their_own_stratum() -> None:
    assert join_categories(["sports", "transportation"], "object") == "transportation+sports"
    assert split_categories("transportation+sports") == ("transportation", "sports")
    assert [category_stratum(c) for c in ("animals", "transportation+sports", "")] == ["animals", "several", ""]


def test_a_word_of_two_lists_is_in_both() -> None:
    lists = word_lists()["object"]
    assert {name for name, words in lists.items() if "skateboard" in words} == {"transportation", "sports"}


@real
def test_all_but_one_of_the_published_categories_are_reproduced() -> None:
    samples = _samples()
    assert all(s.published_category for s in samples)
    (only,) = (s for s in samples if not same_categories(s.category, s.published_category or ""))
    assert (only.image_id, only.changed_original, only.changed_conflicting) == ("482148", "base ball", "basketball")
    assert (only.category, only.published_category) == ("sports", "other")
    assert {only.changed_original, only.changed_conflicting} <= word_lists()["object"]["sports"]
    assert (
        sorted(s.category for s in samples if len(split_categories(s.category)) > 1)
        == ["food+household"] * 3 + ["transportation+sports"] * 15
    )


def test_categories_are_the_same_in_any_order() -> None:
    assert same_categories("sports+transportation", "transportation+sports")
    assert not same_categories("sports", "transportation+sports")


# --- what Tables 8 and 9 were made of --------------------------------------------------------------------------


Way = Literal["left out", "in each", "published"]
WAYS: tuple[Way, ...] = ("left out", "in each", "published")
"""Treatment of a sample with several categories: it counts in no column, in each of its columns, or (by the published field)
in no column."""


@dataclass(frozen=True)
class Rate:
    """``hits`` of ``n`` samples of a column."""

    hits: int
    n: int

    @property
    def value(self) -> float:
        return self.hits / self.n


def rates(hits: Sequence[tuple[ClashSample, bool]], way: Way) -> dict[str, dict[str, Rate]]:
    """The rate of hits in each column of Tables 8 and 9, by kind of change."""
    measured: dict[str, dict[str, Rate]] = {}
    for kind, columns in (("object", OBJECT_CATEGORIES), ("attribute", ATTRIBUTE_CATEGORIES)):
        measured[kind] = {}
        for category in columns:
            chosen = [hit for sample, hit in hits if sample.change_type == kind and category in _counted(sample, way)]
            measured[kind][category] = Rate(sum(chosen), len(chosen))
    return measured


def _counted(sample: ClashSample, way: Way) -> tuple[str, ...]:
    names = split_categories(sample.category if way != "published" else sample.published_category or "")
    return names if way == "in each" or len(names) == 1 else ()


def comes_out(rate: Rate, published: float, sd: float) -> bool:
    """Return True if a published mean of 1,000 bootstrap resamples is compatible with these counts.

    The mean of the resamples lies within 3 standard errors of the rate itself; figures are printed to four decimals.
    """
    return abs(rate.value - published) <= 3 * sd / math.sqrt(1000) + 5e-5


def _hits() -> list[tuple[ClashSample, bool]]:
    """Return each published prediction's sample, and whether the strict rule finds it correct."""
    by_id = {s.id: s for s in _samples()}
    hits = []
    for prediction in read_answers(MULTIPLE_CHOICE):
        letters = set(re.findall(r"\(([A-D])\)", prediction.answer))
        right = letters == set(prediction.instance.references["conflict letter"])
        hits.append((by_id[prediction.instance.group], right))
    return hits


def _not_coming_out(hits: list[tuple[ClashSample, bool]], way: Way) -> set[str]:
    measured = rates(hits, way)
    return {
        f"{kind}/{category}"
        for kind, columns in FLASH_LITE.items()
        for category, (value, sd) in columns.items()
        if not comes_out(measured[kind][category], value / 100, sd / 100)
    }


@real
def test_vehicles_and_sports_match_only_without_two_category_samples() -> None:
    hits = _hits()
    assert sum(hit for _, hit in hits) == 96
    neither = {"object/household", "attribute/colors", "attribute/environmental", "attribute/other"}
    assert {way: _not_coming_out(hits, way) for way in WAYS} == {
        "left out": neither,
        "published": neither,
        "in each": neither | {"object/transportation", "object/sports", "object/food"},
    }


@real
def test_every_column_is_within_three_deviations_of_the_published_one() -> None:
    hits = _hits()
    for way in WAYS:
        measured = rates(hits, way)
        for kind, columns in FLASH_LITE.items():
            for category, (value, sd) in columns.items():
                assert abs(100 * measured[kind][category].value - value) <= 3 * sd


@real
def test_documented_table_matches_measured_values() -> None:
    hits, page = _hits(), (ROOT / "docs" / "clash.md").read_text("utf-8")
    left_out, in_each = rates(hits, "left out"), rates(hits, "in each")
    for kind, columns in FLASH_LITE.items():
        for category, (value, sd) in columns.items():
            without, within = left_out[kind][category], in_each[kind][category]
            cells = [f"{value:.2f} ± {sd:.2f}"]
            cells += [f"{r.hits}/{r.n} = {100 * r.hits / r.n:.2f}" for r in (without, within)]
            assert " | ".join(cells) in page, (kind, category)
