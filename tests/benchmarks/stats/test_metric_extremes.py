"""Bounds over undecided answers: equal to trying every way to label each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cmc_bench.cmc_metrics import MAIN_METRICS
from benchmarks.registry import get_benchmark
from benchmarks.stats.metric_extremes import extremes, is_linear

LABELS, CONDITIONS = 5, 4
SHAPE = (CONDITIONS, LABELS)
LINEAR = [name for name in MAIN_METRICS if not name.startswith("MPB")]
Totals = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Blocks = Sequence[tuple[float, int, int]]
counts = st.lists(st.integers(0, 6), min_size=CONDITIONS * LABELS, max_size=CONDITIONS * LABELS)
some = st.tuples(st.integers(-1, 1), st.integers(0, CONDITIONS - 1))


def _totals(numbers: list[int]) -> Totals:
    return np.array(numbers, float).reshape(SHAPE)


def _value(metric: Any, totals: Totals) -> float:
    values = np.asarray(metric(totals))
    return float(values if totals.ndim == 2 else values[1] - values[0])


def _filled(totals: Totals, blocks: Blocks, labels: Sequence[int]) -> Totals:
    """Every block's answers counted under its label; a run of -1 is both."""
    result = totals.copy()
    for (count, run, condition), label in zip(blocks, labels, strict=True):
        if totals.ndim == 2:
            result[condition, label] += count
        else:
            result[slice(None) if run < 0 else run, condition, label] += count
    return result


def _every_way(metric: Any, totals: Totals, answers: Sequence[tuple[int, int]]) -> Iterator[float]:
    """The metric for each way to label the answers one by one, where it is defined."""
    blocks = [(1.0, run, condition) for run, condition in answers]
    ways = product(range(LABELS), repeat=len(blocks))
    values = np.asarray(metric(np.stack([_filled(totals, blocks, labels) for labels in ways])))
    values = values if totals.ndim == 2 else values[:, 1] - values[:, 0]
    yield from values[~np.isnan(values)].tolist()


def _check(metric: Any, totals: Totals, answers: Sequence[tuple[int, int]]) -> None:
    blocks = [(float(answers.count(key)), *key) for key in dict.fromkeys(answers)]
    least, greatest = (
        _value(metric, _filled(totals, blocks, ends.tolist())) for ends in extremes(metric, totals, blocks)
    )
    every = list(_every_way(metric, totals, answers))
    if every:
        assert (least, greatest) == pytest.approx((min(every), max(every)))


@pytest.mark.parametrize("name", list(MAIN_METRICS))
@given(numbers=counts, answers=st.lists(some, max_size=3))
def test_bounds_of_a_run_are_those_of_every_way(name: str, numbers: list[int], answers: list[tuple[int, int]]) -> None:
    _check(MAIN_METRICS[name], _totals(numbers), [(0, condition) for _, condition in answers])


@pytest.mark.parametrize("name", list(MAIN_METRICS))
@given(numbers=st.lists(counts, min_size=2, max_size=2), answers=st.lists(some, max_size=3))
def test_bounds_of_a_difference_are_those_of_every_way(
    name: str, numbers: list[list[int]], answers: list[tuple[int, int]]
) -> None:
    if name not in LINEAR:
        answers = [(max(run, 0), condition) for run, condition in answers]
    _check(MAIN_METRICS[name], np.stack([_totals(own) for own in numbers]), answers)


def test_shares_of_all_answers_and_their_differences_are_linear() -> None:
    assert [name for name, metric in MAIN_METRICS.items() if is_linear(metric, SHAPE)] == LINEAR
    for benchmark in ("clash", "crosscheck-bench", "contra4"):
        metrics = get_benchmark(benchmark).label_metrics()
        assert metrics is not None
        shape = (len(metrics.conditions), len(metrics.labels))
        assert all(is_linear(metric, shape) for metric in metrics.of.values()), benchmark


def test_many_blocks_are_decided_in_turn() -> None:
    totals = np.stack([_totals([3] * 20), _totals([2] * 20)])
    blocks = [(2.0, run, condition) for run in (-1, 0, 1) for condition in range(CONDITIONS)]
    metric = MAIN_METRICS["CDR"]  # ABSTAIN of the three conflict conditions
    least, greatest = (metric(_filled(totals, blocks, ends.tolist())) for ends in extremes(metric, totals, blocks))
    # 15 and 10 labels a condition, 2 more of each run, 2 of both, which get one label.
    assert least[1] - least[0] == pytest.approx(6 / 42 - (9 + 6) / 57 + min(0, 6 / 42 - 6 / 57))
    assert greatest[1] - greatest[0] == pytest.approx((6 + 6) / 42 - 9 / 57 + max(0, 6 / 42 - 6 / 57))
