"""Stored scores: what is read back, and what no engine can have written."""

from __future__ import annotations

import pytest

from app.store.integrity import stored_values


def test_a_score_can_be_missing() -> None:
    assert stored_values.scores("[-1.5, null, 0]") == (-1.5, None, 0.0)


@pytest.mark.parametrize("text", ["[NaN]", "[true]", '["1"]', "{}", "nonsense", f"[1{'0' * 400}]", f"[{'[' * 100_000}"])
def test_what_is_no_list_of_numbers_is_damage(text: str) -> None:
    with pytest.raises(ValueError, match="scores"):
        stored_values.scores(text)
