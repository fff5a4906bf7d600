"""Questions and names in lists: what they share is left out, what tells them apart stays."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from app.text.text_elision import elide_shared

REGIONS = ("DACH", "Benelux", "Nordics", "Iberia", "Asia-Pacific")
QUESTIONS = [f"What was the revenue in {region} in Q{quarter}?" for region in REGIONS for quarter in range(1, 6)]
"""A spreadsheet of 25 questions, which agree in their first five words."""
WORDS = st.text(string.ascii_letters + string.digits + "äßé収益", min_size=1, max_size=6)


def test_questions_show_what_differs_in_fifteen_cells() -> None:
    shown = elide_shared(QUESTIONS, 15)
    assert len(set(shown)) == len(QUESTIONS)
    for text, question in zip(shown, QUESTIONS, strict=True):
        words = question.split()
        assert words[5][:4] in text
        assert words[-1] in text


def test_an_odd_question_does_not_hide_the_others() -> None:
    mixed = [*QUESTIONS, "How many people work in the company as of the end of the fiscal year?"]
    assert len(set(elide_shared(mixed, 18))) == len(mixed)


def test_what_fits_stays_as_it_is() -> None:
    assert elide_shared(QUESTIONS, 80) == QUESTIONS
    assert elide_shared([], 10) == []


def test_the_same_question_under_several_conditions_is_displayed_alike() -> None:
    shown = elide_shared([QUESTIONS[0], QUESTIONS[1], QUESTIONS[0]], 12)
    assert shown[0] == shown[2] != shown[1]


def test_texts_without_spaces_are_cut_within_the_word() -> None:
    long = ["売上高は東京支店で第一四半期にいくらでしたか", "売上高は大阪支店で第一四半期にいくらでしたか"]
    first, second = elide_shared(long, 12)
    assert "東" in first
    assert "大" in second


def test_names_of_runs_show_what_differs() -> None:
    names = [
        f"cmc-bench-qwen3-vl-4b-instruct-{bits}bit-paper-{code}" for bits, code in ((4, "1a2b3c4d"), (8, "5e6f7a8b"))
    ]
    first, second = elide_shared(names, 24)
    assert "4bit" in first
    assert "8bit" in second


@given(st.lists(st.text(max_size=80), max_size=12), st.integers(0, 40))
def test_no_text_is_wider_than_the_width(texts: list[str], width: int) -> None:
    shown = elide_shared(texts, width)
    assert len(shown) == len(texts)
    assert all(cell_len(text) <= width for text in shown)


@given(
    st.lists(WORDS, max_size=12),
    st.lists(st.tuples(WORDS, WORDS), min_size=2, max_size=12, unique=True),
    st.lists(WORDS, max_size=3),
    st.lists(WORDS, max_size=12),
    st.integers(28, 60),
)
def test_texts_that_differ_in_two_words_stay_distinct(
    before: list[str], pairs: list[tuple[str, str]], between: list[str], after: list[str], width: int
) -> None:
    """Two words of at most 12 cells and three ellipses fit in 28 cells, whatever surrounds them."""
    texts = [" ".join([*before, first, *between, second, *after]) for first, second in pairs]
    shown = elide_shared(texts, width)
    assert len(set(shown)) == len(set(texts))
