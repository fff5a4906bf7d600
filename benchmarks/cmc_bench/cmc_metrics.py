"""Equations 1 to 7 of CMC-Bench (section 4.3), as functions of label counts.

Every function takes counts of shape (..., conditions, labels), in the order of ``PAPER_CONDITIONS`` and
``LABELS``, and returns shape (...), or (..., conditions) where stated. Undefined values are nan. The equations
that pool the conflict conditions are nan unless each of them has an answer: over fewer they would be other metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.cmc_bench.cmc_constants import ACCURATE, LABELS, PAPER_CONDITIONS
from benchmarks.stats.intervals import ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_ACCURATE = np.array([[label in ACCURATE[condition] for label in LABELS] for condition in PAPER_CONDITIONS], float)
_IMAGE, _TEXT, _BOTH, _NEITHER, _ABSTAIN = range(len(LABELS))


def accuracy(counts: Array) -> Array:
    """Return Acc(c), the share of accurate labels under each condition; shape (..., conditions) (equation 1)."""
    return ratio((counts * _ACCURATE).sum(-1), counts.sum(-1))


def mfr(counts: Array) -> Array:
    """Return the modality-following rate: accurate labels over the conflict conditions (equation 2)."""
    return ratio((counts * _ACCURATE)[..., 1:, :].sum((-1, -2)), _pooled(counts))


def mpb_image(counts: Array) -> Array:
    """Return the modality preference bias: IMAGE among the conflict labels IMAGE and TEXT (equation 3)."""
    image, text = _conflict(counts, _IMAGE), _conflict(counts, _TEXT)
    return np.where(np.isnan(_pooled(counts)), np.nan, ratio(image, image + text))


def mpb_text(counts: Array) -> Array:
    """Return 1 - MPB_img (equation 3)."""
    return 1 - mpb_image(counts)


def hr(counts: Array) -> Array:
    """Return the hallucination rate: NEITHER and ABSTAIN over the conflict conditions (equation 4)."""
    return ratio(_conflict(counts, _NEITHER) + _conflict(counts, _ABSTAIN), _pooled(counts))


def accuracy_drop(counts: Array) -> Array:
    """Return Delta Acc: aligned accuracy less the mean accuracy of the conflict conditions (equation 5)."""
    accuracies = accuracy(counts)
    drop: Array = accuracies[..., 0] - accuracies[..., 1:].mean(-1)
    return drop


def condition_gap(counts: Array) -> Array:
    """Return Acc(text-correct) less Acc(image-correct): above 0 where following the text pays (section 5.2, RQ3)."""
    accuracies = accuracy(counts)
    gap: Array = accuracies[..., 2] - accuracies[..., 1]
    return gap


def confabulation_rate(counts: Array) -> Array:
    """Return ConfabR: NEITHER over the conflict conditions (equation 6)."""
    return ratio(_conflict(counts, _NEITHER), _pooled(counts))


def conflict_detection_rate(counts: Array) -> Array:
    """Return CDR: ABSTAIN over the conflict conditions (equation 7)."""
    return ratio(_conflict(counts, _ABSTAIN), _pooled(counts))


def label_shares(counts: Array) -> Array:
    """Return the share of each label in counts of shape (..., labels); the same shape (Figure 3)."""
    return ratio(counts, counts.sum(-1, keepdims=True))


def _of(condition: int) -> Callable[[Array], Array]:
    return lambda counts: accuracy(counts)[..., condition]


MAIN_METRICS: dict[str, Callable[[Array], Array]] = {
    "Aligned": _of(0),
    "Img-Cor": _of(1),
    "Txt-Cor": _of(2),
    "Both-Wr": _of(3),
    "MPB Img": mpb_image,
    "MPB Txt": mpb_text,
    "MFR": mfr,
    "ConfabR": confabulation_rate,
    "CDR": conflict_detection_rate,
    "HR": hr,
    "ΔAcc": accuracy_drop,
}
"""Table 3's columns, in its order."""

LOWER_IS_BETTER = {
    name: name in ("ConfabR", "HR", "ΔAcc") for name in MAIN_METRICS if name not in ("MPB Img", "MPB Txt")
}
"""The directions of its metrics; a preference has none."""


def _conflict(counts: Array, label: int) -> Array:
    total: Array = counts[..., 1:, label].sum(-1)
    return total


def _pooled(counts: Array) -> Array:
    """Return the number of conflict labels; nan if a conflict condition has none."""
    per_condition = counts[..., 1:, :].sum(-1)
    return np.where((per_condition > 0).all(-1), per_condition.sum(-1), np.nan)
