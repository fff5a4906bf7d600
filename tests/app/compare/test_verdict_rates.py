"""Rates of right verdicts on fine-tuned models whose true effect is known, and mention of every loss."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from app.compare.fine_tuning.fine_tuning_effect import fine_tunings
from app.compare.fine_tuning.fine_tuning_verdict import verdict
from tests.support.outcomes import TRUTHS, simulated_runs


def right_verdicts(name: str, times: int) -> Counter[str]:
    """The number of verdicts of each category, after a check that no shown loss is left out."""
    random, categories = np.random.default_rng(5), Counter[str]()
    for _ in range(times):
        (tuning,) = fine_tunings(simulated_runs(TRUTHS[name], random), resamples=2)
        of = verdict(tuning)
        for change in tuning.changes:
            assert not change.is_loss() or (change in of.losses and change.part in of.text)
        categories[of.category] += 1
    return categories


@pytest.mark.parametrize("name", TRUTHS)
def test_the_category_is_that_of_the_true_effect(name: str) -> None:
    categories = right_verdicts(name, 3)
    assert sum(categories[category] for category in TRUTHS[name].categories) >= 2, categories


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTHS)
def test_the_category_is_right_in_four_of_five_studies(name: str) -> None:
    """The good model truly loses a point under each condition, of which eight of 50 studies show more; the others are right."""
    categories = right_verdicts(name, 50)
    assert sum(categories[category] for category in TRUTHS[name].categories) >= (40 if name == "good" else 47), (
        categories
    )
