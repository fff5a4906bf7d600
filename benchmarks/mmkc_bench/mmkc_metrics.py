"""MMKC-Bench's metrics, as functions of counts; undefined values are nan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.mmkc_bench.mmkc_constants import DATASETS, FACT_TYPES, PAPER_COUNTS, RATES, ROW_TYPES
from benchmarks.stats.intervals import ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_FACTS = [ROW_TYPES.index(kind) for kind in FACT_TYPES]
_WEIGHTS = np.array([PAPER_COUNTS[dataset] for dataset in DATASETS], dtype=np.float64)


def shares(counts: Array, outcome: int) -> Array:
    """Return the share of one outcome: OAR, CAR and IAR (section 5.1), or accuracy.

    Counts of shape (..., outcomes) give (...).
    """
    return ratio(counts[..., outcome], counts.sum(-1))


def by_dataset(of_types: Array, facts: tuple[str, ...] = tuple(FACT_TYPES)) -> Array:
    """Return the values of ER, EK and VS from those of the types: shape (..., types) gives (..., 3).

    EK is the unweighted mean over its sub-types ``facts``; the published cells of Tables 2 and 3 follow in this way
    from those of Tables 6 and 5.
    """
    knowledge = of_types[..., [ROW_TYPES.index(kind) for kind in facts]].mean(-1)
    return np.stack([of_types[..., ROW_TYPES.index("ER")], knowledge, of_types[..., ROW_TYPES.index("VS")]], axis=-1)


def average(of_datasets: Array) -> Array:
    """Return the average weighted by the instances of Table 1 (757, 669, 147); nan unless all three are defined."""
    mean: Array = (of_datasets * _WEIGHTS).sum(-1) / _WEIGHTS.sum()
    return mean


def main_columns(counts: Array, outcome: int) -> Array:
    """Return the columns ER, EK, VS and Avg. of Tables 2 and 3: counts of shape (..., types, outcomes) give (..., 4)."""
    datasets = by_dataset(shares(counts, outcome))
    return np.concatenate([datasets, average(datasets)[..., None]], axis=-1)


def main_answers(counts: Array) -> Array:
    """Return the number of answers behind each of the columns ER, EK, VS and Avg."""
    er, *facts, vs = counts.sum(-1)
    return np.array([er, sum(facts), vs, er + sum(facts) + vs])


def change_columns(counts: Array) -> Array:
    """Return the change of CAR from one false text to two, as ER, EK, VS and Avg.

    Counts of shape (..., 2, types, outcomes), with one text and with two, give (..., 4).
    """
    counter = list(RATES).index("COUNTER")
    return main_columns(counts[..., 1, :, :], counter) - main_columns(counts[..., 0, :, :], counter)


def change_answers(counts: Array) -> Array:
    """Return the number of answers behind each of the columns of :func:`change_columns`."""
    return main_answers(counts[0]) + main_answers(counts[1])


def fact_columns(counts: Array, outcome: int) -> Array:
    """Return the columns PT, PL, PC, LT, LC and LO of Tables 5 and 6: counts of shape (..., types, outcomes) give (..., 6)."""
    return shares(counts, outcome)[..., _FACTS]


def fact_answers(counts: Array) -> Array:
    """Return the number of answers behind each of the columns PT, PL, PC, LT, LC and LO."""
    answers: Array = counts.sum(-1)[..., _FACTS]
    return answers


def detection_columns(counts: Array) -> Array:
    """Return Table 4's thirteen accuracies: counts of shape (..., 4, types, 2) give (..., 13).

    The conditions are coarse and fine, each without and with a conflict; the outcomes are right and wrong. A document
    without a conflict is shared by the three facts of a row and asked about once.
    """
    accuracy = shares(counts, 0)
    once = ("PT", "LT")
    coarse = np.stack([by_dataset(accuracy[..., 0, :], once), by_dataset(accuracy[..., 1, :])], axis=-1)
    averages = coarse.mean(-1)
    by_dataset_columns = np.concatenate([coarse, averages[..., None]], axis=-1).reshape(*coarse.shape[:-2], 9)
    fine_grained = accuracy[..., 2:, :][..., _FACTS].mean(-1)
    return np.concatenate(
        [by_dataset_columns, average(averages)[..., None], fine_grained, fine_grained.mean(-1)[..., None]], axis=-1
    )


def detection_answers(counts: Array) -> Array:
    """Return the number of answers behind each of Table 4's thirteen columns."""
    answers = counts.sum(-1)
    types = [[ROW_TYPES.index("ER")], _FACTS, [ROW_TYPES.index("VS")]]
    coarse = np.array([[answers[place, kinds].sum() for place in (0, 1)] for kinds in types])
    fine_grained = answers[2:, _FACTS].sum(-1)
    by_dataset_columns = np.concatenate([coarse, coarse.sum(-1, keepdims=True)], axis=-1).reshape(9)
    return np.concatenate([by_dataset_columns, [coarse.sum()], fine_grained, [fine_grained.sum()]])
