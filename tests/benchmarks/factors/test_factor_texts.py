"""Texts at levels of factors: distance from the right value, statements, length."""

from __future__ import annotations

import pytest

from benchmarks.base import Contradiction
from benchmarks.factors.factor_texts import change_passage, image_statement, in_order, replace_value, value_at_distance
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Media, Part, Text


@pytest.mark.parametrize(
    ("truth", "built", "distance", "value"),
    [
        ("40", "67", "0.5", "60"),
        ("40", "12", "0.25", "32"),
        ("1,200", "3,000", "1", "2,400"),
        ("45%", "50%", "0.2", "54%"),
        ("3", "7", "0.1", "3.3"),
        ("$3.5 million", "$4 million", "1", "$7.0 million"),
        ("40", "67", "built", "67"),
        ("2008", "2015", "0.5", None),
        ("plum", "pear", "0.5", None),
        ("0", "3", "0.5", None),
    ],
)
def test_the_wrong_value_has_the_distance(truth: str, built: str, distance: str, value: str | None) -> None:
    assert value_at_distance(Contradiction(truth, built), distance) == value


def test_the_value_is_replaced_wherever_it_is_stated() -> None:
    passage = "It was 67, not 167; yes, 67."
    assert replace_value(passage, "67", "60") == "It was 60, not 167; yes, 60."


def test_what_is_stated_stands_before_the_passage() -> None:
    assert (
        change_passage("P.", {"text-source": "forum post", "text-date": "2019"})
        == "[source: forum post; date: 2019] P."
    )
    assert change_passage("P.", {"text-source": "none", "length": "0"}) == "P."
    assert image_statement({"image-source": "an official report"}) == "[source: an official report] "


@pytest.mark.parametrize("words", [1, 7, 250])
def test_as_many_words_are_added_around_the_passage(words: int) -> None:
    text = change_passage("The passage.", {"length": str(words)})
    assert len(text.split()) == words + 2
    assert "The passage." in text
    assert not any(character.isdigit() for character in text)


IMAGE = Media("0" * 64, ".png")


@pytest.mark.parametrize(
    ("parts", "order", "expected"),
    [
        ((Text("Look. "), IMAGE, Text(" It is 4.")), "image-first", None),
        ((Text("Look. "), IMAGE, Text(" It is 4.")), "text-first", (Text("Look. "), Text(" It is 4."), IMAGE)),
        ((Text("It is 4. "), IMAGE, Text("?")), "text-first", None),
        ((Text("It is 4. "), IMAGE, Text("?")), "image-first", (IMAGE, Text("It is 4. "), Text("?"))),
        ((Text("It is 4."),), "image-first", None),
        ((IMAGE, Text("How many?")), "text-first", None),
        ((IMAGE, IMAGE, Text("It is 4.")), "text-first", None),
    ],
)
def test_any_prompt_can_have_either_order(
    parts: tuple[Part, ...], order: str, expected: tuple[Part, ...] | None
) -> None:
    assert in_order(get_benchmark("cmc-bench"), parts, ["It is 4."], order) == (expected or parts)
