"""MMKC-Bench's figures, as functions of counts; what is undefined is nan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.mmkc_bench.constants import DATASETS, FACTS, TYPES, WEIGHTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_FACTS = [TYPES.index(kind) for kind in FACTS]
_WEIGHTS = np.array([WEIGHTS[dataset] for dataset in DATASETS], dtype=np.float64)


def shares(counts: Array, outcome: int) -> Array:
    """The share of one outcome: counts of shape (..., outcomes) give (...). OAR, CAR and IAR (section 5.1), or accuracy."""
    whole = counts.sum(-1)
    found: Array = np.divide(counts[..., outcome], whole, out=np.full(whole.shape, np.nan), where=whole > 0)
    return found


def by_dataset(of_types: Array, facts: tuple[str, ...] = tuple(FACTS)) -> Array:
    """The figures of ER, EK and VS from those of the types: shape (..., types) gives (..., 3).

    EK is the unweighted mean over its sub-types ``facts``: so the published cells of Tables 2 and 3 follow from those of
    Tables 6 and 5.
    """
    knowledge = of_types[..., [TYPES.index(kind) for kind in facts]].mean(-1)
    return np.stack([of_types[..., TYPES.index("ER")], knowledge, of_types[..., TYPES.index("VS")]], axis=-1)


def average(of_datasets: Array) -> Array:
    """Their average, weighted by the instances of Table 1 (757, 669, 147); nan unless all three are defined."""
    found: Array = (of_datasets * _WEIGHTS).sum(-1) / _WEIGHTS.sum()
    return found


def main_columns(counts: Array, outcome: int) -> Array:
    """The columns ER, EK, VS and Avg. of Tables 2 and 3: counts of shape (..., types, outcomes) give (..., 4)."""
    datasets = by_dataset(shares(counts, outcome))
    return np.concatenate([datasets, average(datasets)[..., None]], axis=-1)


def fact_columns(counts: Array, outcome: int) -> Array:
    """The columns PT, PL, PC, LT, LC and LO of Tables 5 and 6: counts of shape (..., types, outcomes) give (..., 6)."""
    return shares(counts, outcome)[..., _FACTS]


def detection_columns(counts: Array) -> Array:
    """Table 4's thirteen accuracies: counts of shape (..., 4, types, 2) give (..., 13).

    The conditions are coarse and fine, each without a conflict and with one; the outcomes are right and wrong. A document
    without a conflict is the same for a row's three facts and asked about once.
    """
    accuracy = shares(counts, 0)
    once = ("PT", "LT")
    coarse = np.stack([by_dataset(accuracy[..., 0, :], once), by_dataset(accuracy[..., 1, :])], axis=-1)
    averages = coarse.mean(-1)
    each = np.concatenate([coarse, averages[..., None]], axis=-1).reshape(*coarse.shape[:-2], 9)
    fine = accuracy[..., 2:, :][..., _FACTS].mean(-1)
    return np.concatenate([each, average(averages)[..., None], fine, fine.mean(-1)[..., None]], axis=-1)


def detection_answers(counts: Array) -> Array:
    """How many answers each of Table 4's thirteen columns rests on."""
    answers = counts.sum(-1)
    types = [[TYPES.index("ER")], _FACTS, [TYPES.index("VS")]]
    coarse = np.array([[answers[place, kinds].sum() for place in (0, 1)] for kinds in types])
    fine = answers[2:, _FACTS].sum(-1)
    each = np.concatenate([coarse, coarse.sum(-1, keepdims=True)], axis=-1).reshape(9)
    return np.concatenate([each, [coarse.sum()], fine, [fine.sum()]])
