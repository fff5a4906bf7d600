"""Bounds over undecided answers: equal to trying every way to label each of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cmc_bench.metrics import MAIN_METRICS
from benchmarks.stats.undecided import extremes, filled

LABELS, CONDITIONS = 5, 4
counts = st.lists(st.integers(0, 6), min_size=CONDITIONS * LABELS, max_size=CONDITIONS * LABELS)
undecided = st.lists(st.integers(0, 2), min_size=CONDITIONS, max_size=CONDITIONS)


def _totals(numbers: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(numbers, float).reshape(CONDITIONS, LABELS)


@pytest.mark.parametrize("name", list(MAIN_METRICS))
@given(numbers=counts, open_answers=undecided)
def test_no_labels_lie_outside_the_bounds(name: str, numbers: list[int], open_answers: list[int]) -> None:
    metric, totals = MAIN_METRICS[name], _totals(numbers)
    blocks = [(float(count), 0, condition) for condition, count in enumerate(open_answers) if count]
    least, greatest = (float(metric(filled(totals, blocks, labels))) for labels in extremes(metric, totals, blocks))
    each = [condition for condition, count in enumerate(open_answers) for _ in range(count)][:4]
    if sum(open_answers) > len(each):
        return
    for labels in product(range(LABELS), repeat=len(each)):
        case = totals.copy()
        for condition, label in zip(each, labels, strict=True):
            case[condition, label] += 1
        value = float(metric(case))
        assert np.isnan(value) or least - 1e-9 <= value <= greatest + 1e-9


@given(numbers=st.lists(counts, min_size=2, max_size=2), shared=undecided)
def test_equal_answers_cancel_where_the_runs_have_as_many_labels(numbers: list[list[int]], shared: list[int]) -> None:
    totals = np.stack([_totals(own) for own in numbers])
    totals[1, :, 0] += totals[0].sum(-1)  # so that both runs have as many labels under each condition
    totals[0, :, 1] += totals[1].sum(-1) - totals[0].sum(-1)
    blocks = [(float(count), -1, condition) for condition, count in enumerate(shared) if count]
    for name in ("Aligned", "MFR", "ConfabR", "CDR", "HR", "ΔAcc"):
        metric = MAIN_METRICS[name]
        ends = [np.asarray(metric(filled(totals, blocks, labels))) for labels in extremes(metric, totals, blocks)]
        least, greatest = (end[1] - end[0] for end in ends)
        assert np.isnan(least) or least == pytest.approx(greatest)


def test_many_blocks_are_decided_in_turn() -> None:
    totals = np.stack([_totals([3] * 20), _totals([2] * 20)])
    blocks = [(2.0, run, condition) for run in (-1, 0, 1) for condition in range(CONDITIONS)]
    metric = MAIN_METRICS["CDR"]  # ABSTAIN of the three conflict conditions
    least, greatest = (metric(filled(totals, blocks, labels)) for labels in extremes(metric, totals, blocks))
    # 15 and 10 labels a condition, 2 more of each run, 2 of both, which get one label.
    assert least[1] - least[0] == pytest.approx(6 / 42 - (9 + 6) / 57 + min(0, 6 / 42 - 6 / 57))
    assert greatest[1] - greatest[0] == pytest.approx((6 + 6) / 42 - 9 / 57 + max(0, 6 / 42 - 6 / 57))
