"""Ordered scales: a third member is never credited to a reference, and references are never swapped."""

from __future__ import annotations

import json
from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest

from tests.support.records import verdict

CASES = Path(__file__).resolve().parents[3].parent / "shared" / "cases" / "scales.json"


@pytest.mark.skipif(not CASES.is_file(), reason="needs the cases")
def test_members_of_a_scale_are_distinguished() -> None:
    cases = json.loads(CASES.read_text("utf-8"))
    own, third, wrong = Counter[str](), Counter[str](), []
    for scale in cases["scales"]:
        for image, text in permutations(scale, 2):
            for member in scale:
                for form in cases["forms"]:
                    got = verdict(form % member, image, text, cases["question"])
                    if member in (image, text):
                        own[got.status] += 1
                        is_right = got.label in (None, "IMAGE" if member == image else "TEXT")
                    else:
                        third[got.status] += 1
                        is_right = got.label not in ("IMAGE", "TEXT", "BOTH")
                    if not is_right:
                        wrong.append((form % member, image, text, got.label, got.reason))
    print(f"undecided: {own['undecided']} of {own.total()} references, {third['undecided']} of {third.total()} others")
    assert wrong == []
    assert own["labelled"] >= 0.95 * own.total()
