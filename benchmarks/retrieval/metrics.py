"""CMC-Bench's metrics where a log has conflicts that nobody can decide besides the paper's conditions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.cmc_bench.constants import LABELS, PAPER_CONDITIONS, UNDECIDED
from benchmarks.cmc_bench.metrics import MAIN_METRICS
from benchmarks.vocabulary import LabelMetrics

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def _of_paper(metric: Callable[[Array], Array], counts: Array) -> Array:
    """Return a metric over the paper's conditions, which come first; only the accuracy counts the undecided one."""
    return metric(counts[..., : len(PAPER_CONDITIONS), :])


LABEL_METRICS = LabelMetrics(
    (*PAPER_CONDITIONS, UNDECIDED), LABELS, {name: partial(_of_paper, metric) for name, metric in MAIN_METRICS.items()}
)
