"""Escaping of long texts."""

from __future__ import annotations

import pytest

from app.text.text_escaping import clean


@pytest.mark.parametrize("newlines", [True, False])
def test_a_long_text_is_cleaned_as_a_short_one(newlines: bool) -> None:
    piece = "naïve \x1b[31m\t\u202e\u200b\ufe0f 図\r\n\udcff\U000e0041"
    assert clean(piece * 5_000, newlines=newlines) == clean(piece, newlines=newlines) * 5_000
