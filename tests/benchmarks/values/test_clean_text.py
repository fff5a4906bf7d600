"""One spelling of dashes, quotes, blanks, digits and formulas."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.values.clean_text import clean, fold


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("−5 – 3 — 2", "-5 - 3 - 2"),
        ("‘a’ “b”", "'a' \"b\""),
        ("１２　％", "12 %"),
        ("3½", "3 1/2"),
        ("10⁻²", "10^-2"),
        ("5\u00a0\u202f km", "5 km"),
        ("1\u200b2\u202e", "12"),
        ("٣٤", "34"),
        ("5'6\"", "5 ft 6 in"),
        ("75\\%", "75%"),
        ("9{,}500", "9,500"),
        ("$\\frac{2}{3}$", " 2/3 "),
        ("\\frac{a+b}{2}", "(a+b)/(2)"),
        ("\\text{12 km}", "12 km"),
        ("$3 \\times 10^{8}$", "3 x 10^8"),
        ("20^\\circ C", "20° C"),
        ("It costs $5 and $6.", "It costs $5 and $6."),
        ("a\nb", "a\nb"),
    ],
)
def test_spelling_is_one(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(st.text(st.characters()))
def test_nothing_invisible_is_left(text: str) -> None:
    categories = {unicodedata.category(character) for character in clean(text)}
    assert not categories & {"Cf", "Cs", "Co", "Cn"}


@given(st.text(st.characters(max_codepoint=127)))
def test_case_is_kept_until_it_is_folded(text: str) -> None:
    assert fold(clean(text)) == clean(text).lower()
