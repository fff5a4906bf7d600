"""Logistic curves of a share over a dose: fits by maximum likelihood, and the dose at which the share is one half."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.integer] | NDArray[np.floating]

_STEPS = 50
_CONVERGED = 1e-10


class LogisticFit(NamedTuple):
    """Curves ``logit(share) = intercept + slope * dose``; arrays of equal shape, nan where no finite curve is the likeliest.

    ``midpoint`` is the dose at which the share is one half. Where the answers change completely between two doses, the slope
    has no bound, and the midpoint is the middle of the two; where all answers are equal, it is nan.
    """

    intercept: Array
    slope: Array
    midpoint: Array


def fit_logistic(doses: Array, successes: Counts, sizes: Counts) -> LogisticFit:
    """Fit a curve to each row of counts by Newton's method (iteratively reweighted least squares).

    ``doses`` has shape (levels,), in any order; ``successes`` and ``sizes`` have shape (..., levels), and the result (...).
    """
    doses = np.asarray(doses, float)
    hits, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(sizes, float))
    shape = hits.shape[:-1]
    hits, n = hits.reshape(-1, len(doses)), n.reshape(-1, len(doses))
    midpoint, is_bounded = _separation(doses, hits, n)
    intercept, slope = np.full(len(hits), np.nan), np.full(len(hits), np.nan)
    if is_bounded.any():
        intercept[is_bounded], slope[is_bounded] = _newton(doses, hits[is_bounded], n[is_bounded])
    with np.errstate(divide="ignore", invalid="ignore"):
        midpoint = np.where(is_bounded, -intercept / slope, midpoint)
    return LogisticFit(intercept.reshape(shape), slope.reshape(shape), midpoint.reshape(shape))


def curve(fit: LogisticFit, doses: Array) -> Array:
    """Return the shares of fitted curves at doses; shape (..., doses)."""
    shares: Array = _sigmoid(fit.intercept[..., None] + fit.slope[..., None] * np.asarray(doses, float))
    return shares


def _separation(doses: Array, hits: Array, n: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the midpoint of counts that a threshold separates, and whether none does; a finite fit exists only then."""
    failures = n - hits
    low_hit, high_hit = _range(doses, hits > 0)
    low_miss, high_miss = _range(doses, failures > 0)
    is_bounded = (low_hit < high_miss) & (low_miss < high_hit)
    with np.errstate(invalid="ignore"):
        rising, falling = (high_miss + low_hit) / 2, (high_hit + low_miss) / 2
    midpoint = np.where(high_miss <= low_hit, rising, falling)
    several = np.maximum(high_hit, high_miss) > np.minimum(low_hit, low_miss)
    return np.where(np.isfinite(midpoint) & several, midpoint, np.nan), is_bounded


def _range(doses: Array, has: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the lowest and the highest dose at which each row has any; infinities where it has none."""
    return np.where(has, doses, np.inf).min(-1), np.where(has, doses, -np.inf).max(-1)


def _newton(doses: Array, hits: Array, n: Array) -> tuple[Array, Array]:
    # Standardised doses keep the equations well conditioned, whatever the unit.
    centre, spread = doses.mean(), doses.std()
    x = (doses - centre) / spread
    total = hits.sum(-1) / n.sum(-1)
    a, b = np.log(total / (1 - total)), np.zeros(len(hits))
    deviance = _loss(a, b, x, hits, n)
    for _ in range(_STEPS):
        share = _sigmoid(a[:, None] + b[:, None] * x)
        weight, rest = n * share * (1 - share), hits - n * share
        aa, ab, bb = weight.sum(-1), (weight * x).sum(-1), (weight * x * x).sum(-1)
        ga, gb = rest.sum(-1), (rest * x).sum(-1)
        determinant = np.maximum(aa * bb - ab * ab, 1e-300)
        step_a, step_b = (bb * ga - ab * gb) / determinant, (aa * gb - ab * ga) / determinant
        scale = np.ones(len(hits))
        for _ in range(20):  # a full step can overshoot where most answers agree
            proposed = _loss(a + scale * step_a, b + scale * step_b, x, hits, n)
            worse = proposed > deviance + 1e-12 * np.abs(deviance)
            if not worse.any():
                break
            scale = np.where(worse, scale / 2, scale)
        a, b, deviance = a + scale * step_a, b + scale * step_b, proposed
        if np.max(np.abs(scale * step_a) + np.abs(scale * step_b)) < _CONVERGED:
            break
    return a - b * centre / spread, b / spread


def _loss(a: Array, b: Array, x: Array, hits: Array, n: Array) -> Array:
    """Return the negative log-likelihood of each row."""
    logit = a[:, None] + b[:, None] * x
    loss: Array = (n * np.logaddexp(0, logit) - hits * logit).sum(-1)
    return loss


def _sigmoid(logit: Array) -> Array:
    with np.errstate(invalid="ignore"):  # there may be no curve
        share: Array = np.exp(-np.logaddexp(0, -logit))
    return share
