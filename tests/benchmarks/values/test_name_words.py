"""Words of names: spelling, number, other names, articles and titles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.values.name_words import canonical, initials, name_words, same_letters, territories, words_of


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("colour", "color"),
        ("organised", "organized"),
        ("centre", "center"),
        ("catalogue", "catalog"),
        ("travelled", "traveled"),
        ("grey", "gray"),
        ("cities", "city"),
        ("boxes", "box"),
        ("women", "woman"),
        ("bus", "bus"),
        ("glass", "glass"),
        ("smith's", "smith"),
        ("bicycle", "bike"),
    ],
)
def test_word_has_one_form(word: str, form: str) -> None:
    assert canonical(word) == canonical(form)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("the dr. jane smith", ("jane", "smith")),
        ("u.s.", ("united", "state")),
        ("exit a", ("exit", "a")),
        ("the", ("the",)),
        ("apple inc.", ("apple",)),
    ],
)
def test_articles_and_titles_are_no_part_of_a_name(name: str, words: tuple[str, ...]) -> None:
    assert name_words(name) == words


def test_slip_of_the_pen_is_one_letter_of_a_long_word() -> None:
    assert same_letters("fennwick", "fenwick")
    assert same_letters("fenwick", "fenwick")
    assert not same_letters("smith", "smyth")
    assert not same_letters("2000000", "2000001")


def test_initials_and_countries() -> None:
    assert initials(["world", "health", "organization"]) == "who"
    assert territories()["deutschland"] == territories()["germany"] == "DE"


@given(st.text())
def test_form_of_a_form_is_itself_for_any_word(text: str) -> None:
    words = words_of(text.casefold())
    assert all(isinstance(word, str) for word in words)
    assert words == words_of(text.casefold())
