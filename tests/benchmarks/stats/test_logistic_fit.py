"""Logistic curves: the likeliest ones, those without bounds, and recovery of known curves from simulated answers."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.stats.intervals import estimate, resample
from benchmarks.stats.logistic_fit import curve, fit_logistic

DOSES = np.array([0.0, 1.0, 2.0, 4.0, 8.0])


def test_the_fit_is_the_likeliest_curve() -> None:
    hits, n = np.array([19, 16, 13, 6, 1]), np.array([20, 22, 21, 19, 20])
    fit = fit_logistic(DOSES, hits, n)
    # At the maximum of the likelihood, both derivatives are 0, and it is concave.
    rest = hits - n * curve(fit, DOSES)
    assert abs(rest.sum()) < 1e-7
    assert abs((rest * DOSES).sum()) < 1e-7
    assert np.isclose(fit.midpoint, -fit.intercept / fit.slope)


@pytest.mark.parametrize("seed", range(5))
def test_fits_are_those_of_statsmodels(seed: int) -> None:
    statsmodels = pytest.importorskip("statsmodels.api")
    random = np.random.default_rng(seed)
    n = random.integers(5, 40, size=5)
    hits = random.binomial(n, 1 / (1 + np.exp(-(2 - 0.7 * DOSES))))
    reference = statsmodels.GLM(
        np.column_stack([hits, n - hits]), statsmodels.add_constant(DOSES), family=statsmodels.families.Binomial()
    ).fit()
    fit = fit_logistic(DOSES, hits, n)
    assert np.allclose([fit.intercept, fit.slope], reference.params, rtol=1e-6)


def test_the_unit_of_the_dose_does_not_matter() -> None:
    hits, n = np.array([19, 16, 13, 6, 1]), np.full(5, 20)
    fit, scaled = fit_logistic(DOSES, hits, n), fit_logistic(1e6 * DOSES + 3e6, hits, n)
    assert np.isclose(scaled.midpoint, 1e6 * fit.midpoint + 3e6)


@pytest.mark.parametrize(
    ("hits", "midpoint"),
    [
        ([20, 20, 0, 0, 0], 1.5),
        ([0, 0, 0, 20, 20], 3.0),
        ([20, 20, 7, 0, 0], 2.0),
        ([0, 5, 20, 20, 20], 1.0),
        ([0, 0, 0, 0, 0], np.nan),
        ([20, 20, 20, 20, 20], np.nan),
    ],
)
def test_a_complete_change_has_a_midpoint_and_no_slope(hits: list[int], midpoint: float) -> None:
    fit = fit_logistic(DOSES, np.array(hits), np.full(5, 20))
    assert np.isnan(fit.slope)
    assert np.isclose(fit.midpoint, midpoint, equal_nan=True)


def test_answers_at_a_single_dose_have_no_curve() -> None:
    fit = fit_logistic(DOSES, np.array([7, 0, 0, 0, 0]), np.array([20, 0, 0, 0, 0]))
    assert np.isnan([fit.intercept, fit.slope, fit.midpoint]).all()


@pytest.mark.slow
def test_known_curves_are_within_their_intervals() -> None:
    """The 95% bootstrap intervals of slope and midpoint hold the truth in about 95% of simulated experiments."""
    random, truth = np.random.default_rng(0), (-0.8, 3.0)
    covered = np.zeros(2)
    experiments, examples = 1000, 80
    for experiment in range(experiments):
        # Examples differ in how soon the text wins, so that an example's answers are correlated.
        own = random.uniform(size=(examples, 1))
        shift = random.uniform(size=(examples, len(DOSES)))
        uniform = np.where(random.uniform(size=(examples, 1)) < 0.3, own, shift)
        follows = uniform < 1 / (1 + np.exp(-truth[0] * (DOSES - truth[1])))
        counts = np.stack([follows, np.ones_like(follows)], -1).astype(np.int64)
        point, draws = counts.sum(0).astype(float), resample(counts, 300, experiment)
        fit, drawn = fit_logistic(DOSES, point[:, 0], point[:, 1]), fit_logistic(DOSES, draws[..., 0], draws[..., 1])
        for number, name in enumerate(("slope", "midpoint")):
            value, values = float(getattr(fit, name)), getattr(drawn, name)
            interval = estimate(value, values, examples, clusters=examples, within=None)
            assert interval.low is not None
            assert interval.high is not None
            covered[number] += interval.low <= truth[number] <= interval.high
    assert (covered / experiments >= 0.92).all()
    assert (covered / experiments <= 0.98).all()


@pytest.mark.parametrize(
    ("lapses", "to_text", "slope", "shift"),
    [(0.0, 0.0, 1.0, 0.0), (0.1, 0.0, 0.75, 0.0), (0.0, 0.1, 0.77, 0.06), (0.0, 0.2, 0.64, 0.13)],
)
def test_lapses_flatten_the_curve_as_documented(lapses: float, to_text: float, slope: float, shift: float) -> None:
    """The figures of docs/factors.md: the mean fit of a reader that lapses, in shares of the slope and of the range of doses."""
    doses, (true_slope, middle) = np.linspace(0, 4, 6), (-2.0, 2.0)
    shares = (1 - lapses - to_text) / (1 + np.exp(-true_slope * (doses - middle))) + lapses / 2
    hits = np.random.default_rng(0).binomial(80, shares, size=(1000, len(doses)))
    fit = fit_logistic(doses, hits, np.full(len(doses), 80))
    assert np.nanmean(fit.slope) / true_slope == pytest.approx(slope, abs=0.03)
    assert (middle - np.nanmean(fit.midpoint)) / 4 == pytest.approx(shift, abs=0.01)
