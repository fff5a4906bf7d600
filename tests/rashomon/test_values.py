"""Values and labels without a run, and as a user of the library sees them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rashomon


@pytest.mark.parametrize(
    ("a", "b", "question", "expected"),
    [
        ("12 500", "12,500", None, "same"),
        ("4 July 1776", "July 4, 1776", None, "same"),
        ("$43", "€43", None, "different"),
        ("not significant", "significant", None, "different"),
        ("12", "12 km", None, "unclear"),
        ("12", "12 km", "How many km is the track long?", "same"),
        ("", "", None, "same"),
        ("x" * 100_000, "9" * 400, "?" * 100_000, "different"),
    ],
)
def test_two_values(a: str, b: str, question: str | None, expected: str) -> None:
    assert rashomon.same_value(a, b, question) == rashomon.same_value(b, a, question=question) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("43", "IMAGE"),
        ("It was 67 according to the passage.", "TEXT"),
        ("43 (chart) and 67 (text)", "BOTH"),
        ("51", "NEITHER"),
        ("I cannot tell.", "ABSTAIN"),
        ("The chart has 43 while the passage has 67, so one may wonder.", "UNDECIDED"),
        ("<think>43</think>", "UNDECIDED"),
        ("", "UNDECIDED"),
    ],
)
def test_a_label(answer: str, expected: str) -> None:
    assert rashomon.label(answer, question="How many were sold?", image="43", text=["67", "sixty-seven"]) == expected


def test_a_label_needs_a_source() -> None:
    assert rashomon.label("43", image="43") == "IMAGE"
    with pytest.raises(rashomon.RashomonError):
        rashomon.label("43", question="How many?")
    with pytest.raises(rashomon.RashomonError):
        rashomon.label("43", image=(), text=())


def test_neither_loads_a_store_or_a_model() -> None:
    code = (
        "import rashomon, sys; rashomon.same_value('1', '2'); rashomon.label('43', image='43', text='4');"
        "print([m for m in ('sqlite3', 'mlx', 'textual', 'app') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
