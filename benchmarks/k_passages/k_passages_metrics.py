"""The metrics of k passages, as functions of label counts of shape (..., conditions, labels)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.k_passages.k_passages_constants import CONDITIONS, LABELS
from benchmarks.stats.intervals import ratio
from benchmarks.vocabulary import LabelMetrics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def share(conditions: slice, labels: tuple[str, ...], counts: Array) -> Array:
    """Return the share of these labels among the answers under these conditions; nan without answers."""
    chosen = counts[..., conditions, :]
    part = chosen[..., [LABELS.index(label) for label in labels]].sum((-1, -2))
    return ratio(part, chosen.sum((-1, -2)))


_NO_CONFLICT, _TIE, _MAJORITY = (slice(place, place + 1) for place in range(len(CONDITIONS)))

METRICS = {
    "No conflict": partial(share, _NO_CONFLICT, ("RIGHT",)),
    "Tie": partial(share, _TIE, ("RIGHT",)),
    "Majority wrong": partial(share, _MAJORITY, ("RIGHT",)),
    "Follows majority": partial(share, _MAJORITY, ("WRONG",)),
    "Distracted": partial(share, slice(0, len(CONDITIONS)), ("DISTRACTOR",)),
    "Shows conflict": partial(share, slice(1, len(CONDITIONS)), ("BOTH", "ABSTAIN")),
}
"""The columns of the main table."""

CONDITIONS_OF = {
    "No conflict": CONDITIONS[:1],
    "Tie": CONDITIONS[1:2],
    "Majority wrong": CONDITIONS[2:],
    "Follows majority": CONDITIONS[2:],
    "Distracted": CONDITIONS,
    "Shows conflict": CONDITIONS[1:],
}
"""The conditions that each metric counts."""

LABEL_METRICS = LabelMetrics(
    CONDITIONS,
    LABELS,
    METRICS,
    lower_is_better={name: name in ("Follows majority", "Distracted") for name in METRICS},
)
