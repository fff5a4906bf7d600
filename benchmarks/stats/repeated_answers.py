"""Statistics of answers that repeat instances: two equal answers to one instance are no more than one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import SHARE, clustered_wilson, estimate, influence, share_estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from benchmarks.stats.clusters import Numbers
    from benchmarks.stats.intervals import Draws
    from benchmarks.stats.paired_tests import Difference
    from benchmarks.vocabulary import Estimate


@dataclass(frozen=True, eq=False)
class RepeatedClusters(Clusters):
    """Clusters of answers of which several ask one ``instance``, whose numbers have shape (answers,).

    Variances are over clusters, as everywhere. What also bounds an effective sample size, the number of answers, is here
    :meth:`distinct` times that, so that equal answers to one instance leave an interval as wide as one of them does.
    """

    instance: Numbers

    def at(self, rows: Any) -> Clusters:
        clusters = super().at(rows)
        return RepeatedClusters(clusters.own, clusters.shown, self.instance[rows])

    def mean(self, values: Any, weight: Any = None) -> Estimate:
        weights = self._weights(weight)
        share = super().mean(values, weights * self.distinct(values))
        return replace(share, n=round(float(weights.sum())))

    def difference(self, lead: Any, weight: Any = None) -> Difference | None:
        weights = self._weights(weight)
        difference = super().difference(lead, weights * self.distinct(lead))
        return None if difference is None else replace(difference, pairs=round(float(weights.sum())))

    def distinct(self, values: Any) -> float:
        """Return the effective share of the answers with these ``values``, shape (answers,): 1 / (1 + (m - 1) r).

        m is the number of answers to an instance, and r the correlation of two of them (Kish 1965, section 5.4): how far they
        agree beyond any two answers. It is at least 0, and 1 where all answers are equal.
        """
        import numpy as np

        same, pairs, answers = agreeing_pairs(self.instance, values)
        if not pairs.any():
            return 1.0
        shares = np.unique(values, return_counts=True)[1] / len(self)
        agreed, by_chance = float(same.sum() / pairs.sum()), float((shares**2).sum())
        correlation = max(0.0, (agreed - by_chance) / (1 - by_chance)) if len(shares) > 1 else 1.0
        return 1 / (1 + (len(self) / len(answers) - 1) * correlation)

    def _weights(self, weight: Any) -> NDArray[np.float64]:
        import numpy as np

        return np.ones(len(self)) if weight is None else np.asarray(weight, dtype=np.float64)


def wilson_repeated(successes: Any, sizes: Any, distinct: float) -> Estimate:
    """Return :func:`clustered_wilson` of answers of which a share is ``distinct``."""
    share = clustered_wilson(successes * distinct, sizes * distinct)
    return replace(share, n=round(float(sizes.sum())))


def distinct_share(clusters: Clusters, values: Any) -> float:
    """Return :meth:`RepeatedClusters.distinct` of answers with these ``values``; 1 where no instance is repeated."""
    return clusters.distinct(values) if isinstance(clusters, RepeatedClusters) else 1.0


def agreeing_pairs(instance: Numbers, values: Any) -> tuple[Numbers, Numbers, Numbers]:
    """Return the pairs of answers to each instance with one value, all its pairs, and its answers; shape (instances,)."""
    import numpy as np

    instances, row = np.unique(instance, return_inverse=True)
    kinds, column = np.unique(values, return_inverse=True)
    cells, size = np.unique(row * len(kinds) + column, return_counts=True)
    same = np.zeros(len(instances), dtype=np.int64)
    np.add.at(same, cells // max(1, len(kinds)), size * (size - 1) // 2)
    answers = np.bincount(row, minlength=len(instances))
    return same, answers * (answers - 1) // 2, answers


def metric_estimate(
    metric: Callable[[Any], Any],
    counts: NDArray[Any],
    n: int,
    draws: Callable[[], Draws],
    *,
    clusters: int,
    within: tuple[float, float] | None = SHARE,
    distinct: float = 1.0,
    reason: str = "",
) -> Estimate:
    """Return a metric of counts of shape (clusters, *cells) with the interval that its range asks for; see :func:`estimate`.

    The variance of a share is that of what each cluster adds to it, so that a table has the same interval as a decision; of other
    metrics it is that of the bootstrap ``draws``. Of the ``n`` answers a share is ``distinct``; see
    :meth:`RepeatedClusters.distinct`.
    """
    value = float(metric(counts.sum(0).astype(float)))
    different = max(min(n, 1), round(n * distinct))  # a metric of a few answers rests on one at least
    if within == SHARE and not math.isnan(value):
        variance = math.fsum((influence(metric, counts) ** 2).tolist())  # whatever the order of clusters
        cell = share_estimate(value, variance, clusters, different)
    else:
        replicates = draws().replicates(metric)
        cell = estimate(value, replicates, different, clusters=clusters, within=within, reason=reason)
    return replace(cell, n=n)
