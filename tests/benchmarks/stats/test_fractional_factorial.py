"""Factorial designs: effects of known sizes come out of full and fractional designs."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.stats.fractional_factorial import fraction, full_design, interaction, main_effect, model_matrix
from benchmarks.stats.intervals import DIFFERENCE, estimate, resample


def test_effects_of_a_full_design_are_differences_of_means() -> None:
    levels = (3, 2)
    cells = full_design(levels)
    means = np.array([0.9, 0.7, 0.6, 0.1, 0.5, 0.0])
    weights = main_effect(cells, levels, 0, 2)
    assert weights is not None
    assert np.isclose(weights @ means, 0.25 - 0.8)
    weights = main_effect(cells, levels, 1, 1)
    assert weights is not None
    assert np.isclose(weights @ means, (0.7 + 0.1 + 0.0) / 3 - (0.9 + 0.6 + 0.5) / 3)
    weights = interaction(cells, levels, (0, 1))
    assert weights is not None
    assert np.isclose(weights @ means, (0.0 - 0.7) - (0.5 - 0.9))


def test_a_half_of_four_factors_tells_all_main_effects() -> None:
    levels = (2, 2, 2, 2)
    cells = fraction(levels, 8)
    assert len(set(cells)) == 8
    assert cells[0] == (0, 0, 0, 0)
    matrix = model_matrix(cells, levels, interactions=False)
    assert np.allclose(matrix.T @ matrix, 8 * np.eye(5))  # orthogonal
    assert interaction(cells, levels, (0, 1)) is None  # a half confounds it with another pair


@pytest.mark.slow
@pytest.mark.parametrize(("levels", "cells"), [((2,) * 4, 8), ((4, 3, 2), 20), ((3, 3, 3), 9), ((2,) * 13, 64)])
def test_rounding_errors_do_not_change_a_fraction(
    levels: tuple[int, ...], cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processors multiply matrices with different rounding errors, and a seed must give the same build on each."""
    expected = fraction(levels, cells)
    invert, random = np.linalg.inv, np.random.default_rng(0)
    monkeypatch.setattr(np.linalg, "inv", lambda a: invert(a) * (1 + 1e-12 * random.normal(size=a.shape)))
    for _ in range(3):
        assert fraction(levels, cells) == expected


@pytest.mark.parametrize(("levels", "cells"), [((4, 3, 2), 20), ((2,) * 5, 16), ((5, 5), 25), ((3, 3, 3), 19)])
def test_a_fraction_that_is_large_enough_tells_every_effect(levels: tuple[int, ...], cells: int) -> None:
    chosen = fraction(levels, cells)
    full = full_design(levels)
    random = np.random.default_rng(3)
    model = model_matrix(full, levels, interactions=True)
    means = dict(zip(full, model @ random.normal(size=model.shape[1]), strict=True))
    pairs = [(a, b) for a in range(len(levels)) for b in range(a)]
    contrasts = [(main_effect(chosen, levels, a, 1), main_effect(full, levels, a, 1)) for a in range(len(levels))]
    contrasts += [(interaction(chosen, levels, pair), interaction(full, levels, pair)) for pair in pairs]
    for part, whole in contrasts:
        assert part is not None
        assert whole is not None
        assert np.isclose(part @ [means[c] for c in chosen], whole @ [means[c] for c in full])


def test_two_cells_tell_no_effect_of_three_levels() -> None:
    assert main_effect([(0, 0), (2, 1)], (3, 2), 0, 1) is None


def test_known_effects_are_within_their_intervals() -> None:
    """95% intervals of a main effect and of an interaction hold the truth in about 95% of simulated experiments."""
    levels = (2, 3)
    cells = full_design(levels)
    chances = np.array([0.9, 0.8, 0.6, 0.7, 0.5, 0.1])
    contrasts = [main_effect(cells, levels, 0, 1), main_effect(cells, levels, 1, 2), interaction(cells, levels, (0, 1))]
    weights = np.stack([contrast for contrast in contrasts if contrast is not None])
    truth, covered = weights @ chances, np.zeros(3)
    random, experiments, examples = np.random.default_rng(1), 1000, 60
    for experiment in range(experiments):
        hits = random.uniform(size=(examples, 6)) < chances
        draws = resample(hits.astype(np.int64), 300, experiment) / examples
        for number in range(3):
            value, drawn = float(weights[number] @ hits.mean(0)), draws @ weights[number]
            interval = estimate(value, drawn, examples, clusters=examples, within=DIFFERENCE if number < 2 else None)
            assert interval.low is not None
            assert interval.high is not None
            covered[number] += interval.low <= truth[number] <= interval.high
    assert (covered / experiments >= 0.92).all()
    assert (covered / experiments <= 0.98).all()
