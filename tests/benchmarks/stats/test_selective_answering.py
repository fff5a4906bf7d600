"""Selective answering: the threshold's definition, and its promise in simulated runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.stats.selective_answering import conformal_threshold, smallest_risk


def test_threshold_is_the_lowest_that_the_equation_allows() -> None:
    random = np.random.default_rng(0)
    for _ in range(30):
        examples = int(random.integers(15, 60))
        group = np.repeat(np.arange(examples), 2)
        confidence = np.round(random.random(2 * examples), 1)
        wrong = (random.random(2 * examples) < 0.4 * (1 - confidence)).astype(float)

        def bound(
            t: float,
            n: int = examples,
            confidence: np.ndarray = confidence,
            wrong: np.ndarray = wrong,
        ) -> float:
            risk = ((confidence > t) * wrong).reshape(n, 2).mean(1).mean()
            return float(n / (n + 1) * risk + 1 / (n + 1))

        threshold = conformal_threshold(confidence, wrong, group, 0.1)
        candidates = [-math.inf, *sorted(set(confidence.tolist()))]
        expected = next(t for t in candidates if bound(t) <= 0.1 + 1e-12)
        assert threshold.above == expected


def test_too_few_examples_guarantee_nothing() -> None:
    confidence, right = np.linspace(0, 1, 18), np.zeros(18)
    assert conformal_threshold(confidence, right, np.arange(18), 0.05).above == math.inf
    assert smallest_risk(18) > 0.05
    assert conformal_threshold(np.linspace(0, 1, 19), np.zeros(19), np.arange(19), 0.05).above == -math.inf


@pytest.mark.parametrize(("risk", "per_group"), [(0.1, 1), (0.05, 3)])
def test_the_promise_is_kept_in_1000_runs(risk: float, per_group: int) -> None:
    random = np.random.default_rng(1)
    losses = []
    for _ in range(1000):
        examples = 80
        difficulty = random.beta(2, 2, (examples + 1, 1))  # the answers of an example are correlated
        confidence = np.clip(1 - difficulty + random.normal(0, 0.2, (examples + 1, per_group)), 0, 1)
        wrong = (random.random((examples + 1, per_group)) < difficulty).astype(float)
        group = np.repeat(np.arange(examples), per_group)
        threshold = conformal_threshold(confidence[:-1].ravel(), wrong[:-1].ravel(), group, risk)
        losses.append(float(((confidence[-1] > threshold.above) * wrong[-1]).mean()))
    error = float(np.std(losses)) / math.sqrt(len(losses))
    assert np.mean(losses) <= risk + 2 * error
    assert np.mean(losses) >= risk / 2, "a threshold that withholds everything keeps any promise"
