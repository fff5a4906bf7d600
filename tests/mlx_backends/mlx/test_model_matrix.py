"""Every family of models does what the matrix says, no more and no less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.in_torch import needs_torch
from tests.support.model_matrix import ABILITIES, GAPS, SLOW, Subject
from tests.support.tiny_models import FAMILIES

_FAST_FAMILY = "qwen3_vl"
"""The family whose cells the fast suite measures; of the others of CMC-Bench's paper, one image."""
_ONE_IMAGE = ("lfm2_vl", "gemma3n", "deepseek_vl_v2")


@pytest.fixture(scope="module")
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    subject = Subject(request.param, tmp_path_factory.mktemp(request.param))
    yield subject
    subject.close()


def cases() -> Iterator[Any]:
    """Yield every family with every ability; most are marked slow."""
    for family in sorted(FAMILIES):
        for ability in ABILITIES:
            one_image = family in _ONE_IMAGE and ability == "one image"
            slow = ability in SLOW or not (family == _FAST_FAMILY or one_image)
            marks = [pytest.mark.slow] * slow + [needs_torch] * (ability == "transformers")
            yield pytest.param(family, ability, marks=marks, id=f"{family}-{ability}")


@pytest.mark.slow
@pytest.mark.parametrize(("subject", "ability"), list(cases()), indirect=["subject"])
def test_a_family_does_what_the_matrix_says(subject: Subject, ability: str) -> None:
    expected, result = GAPS.get((subject.family, ability), "yes"), subject.measure(ability)
    assert result == expected or (expected != "yes" and result.startswith(expected))
