"""Every family of models does what the matrix says, no more and no less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.in_torch import needs_torch
from tests.support.model_matrix import ABILITIES, GAPS, SLOW, SLOW_FAMILIES, Subject
from tests.support.tiny_models import FAMILIES

FAST_FAMILIES = ("qwen3_vl", "lfm2_vl", "deepseek_vl_v2", "gemma3n")
"""The models of CMC-Bench's paper."""


@pytest.fixture(scope="module")
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    subject = Subject(request.param, tmp_path_factory.mktemp(request.param))
    yield subject
    subject.close()


def cases() -> Iterator[Any]:
    """Yield every family with every ability; of most families, only one image is fast."""
    for family in sorted(FAMILIES):
        for ability in ABILITIES:
            first = "text" if family in SLOW_FAMILIES else "one image"
            slow = ability in SLOW or (family not in FAST_FAMILIES and ability != first)
            marks = [pytest.mark.slow] * slow + [needs_torch] * (ability == "transformers")
            yield pytest.param(family, ability, marks=marks, id=f"{family}-{ability}")


@pytest.mark.parametrize(("subject", "ability"), list(cases()), indirect=["subject"])
def test_a_family_does_what_the_matrix_says(subject: Subject, ability: str) -> None:
    expected, result = GAPS.get((subject.family, ability), "yes"), subject.measure(ability)
    assert result == expected or (expected != "yes" and result.startswith(expected))
