"""Every family of models does what the matrix says, no more and no less."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.in_torch import needs_torch
from tests.support.model_matrix import ABILITIES, GAPS, SLOW, Subject
from tests.support.tiny_models import FAMILIES


@pytest.fixture(scope="module")
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    subject = Subject(request.param, tmp_path_factory.mktemp(request.param))
    yield subject
    subject.close()


def marks(ability: str) -> list[pytest.MarkDecorator]:
    """Return the marks of an ability's tests."""
    return [pytest.mark.slow] * (ability in SLOW) + [needs_torch] * (ability == "transformers")


@pytest.mark.parametrize("ability", [pytest.param(ability, marks=marks(ability)) for ability in ABILITIES])
@pytest.mark.parametrize("subject", sorted(FAMILIES), indirect=True)
def test_a_family_does_what_the_matrix_says(subject: Subject, ability: str) -> None:
    expected, result = GAPS.get((subject.family, ability), "yes"), subject.measure(ability)
    assert result == expected or (expected != "yes" and result.startswith(expected))
