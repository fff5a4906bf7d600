"""Clusters: answers that share a picture, a page or a document, over which every interval and test is taken.

Answers to questions about one page are right or wrong together. An interval that takes them as independent is too narrow: of
20 pages with 10 questions each, correlated by .4, it covers the truth in 72% of studies rather than in 95%.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from benchmarks.stats.paired_tests import Difference
    from benchmarks.vocabulary import Estimate

    Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Clusters:
    """The clusters of answers, numbered in order of first occurrence.

    An answer counts in its own cluster, and in that of every other page that it shows, such as a picture borrowed from another
    example. Simulations favour this over joining all pages that a borrowed picture connects, which leaves a single cluster, and
    over the own cluster alone, whose 95% intervals cover as few as 72% where the borrowed picture decides.

    Attributes:
        own: The number of each answer's cluster, shape (answers,).
        shown: The numbers of the other clusters that it shows, -1 for none; shape (answers, pages).
    """

    own: Numbers
    shown: Numbers

    @classmethod
    def of(cls, own: Any, shown: Any = None) -> Clusters:
        """Return the clusters with these numbers, which are from 0 on.

        A page that the answers of only one cluster show connects nothing, and is dropped.
        """
        import numpy as np

        count, numbers = number_groups(np.asarray(own))
        if shown is None or not np.size(shown):
            return cls(numbers, np.zeros((len(numbers), 0), np.int64))
        return cls(numbers, _connected(np.asarray(own), numbers, count, np.asarray(shown)))

    def __len__(self) -> int:
        return len(self.own)

    @cached_property
    def count(self) -> int:
        """The number of clusters."""
        return int(max(self.own.max(initial=-1), self.shown.max(initial=-1))) + 1

    @cached_property
    def own_count(self) -> int:
        """The number of clusters that have answers of their own."""
        return int(self.own.max(initial=-1)) + 1

    def at(self, rows: Any) -> Clusters:
        """Return the clusters of some answers, a mask or their places."""
        return Clusters.of(self.own[rows], self.shown[rows])

    def sums(self, values: Any) -> NDArray[np.float64]:
        """Return the sums of the answers' ``values``, shape (answers, *cells), by cluster; shape (clusters, *cells).

        What a cluster shows of others is counted in it less the mean over clusters, so that all sums add up to those of the
        answers.
        """
        import numpy as np

        values = np.asarray(values, dtype=np.float64)
        totals = np.zeros((self.count, *values.shape[1:]))
        np.add.at(totals, self.own, values)
        if self.shown.size:
            more = np.zeros_like(totals)
            for column in self.shown.T:
                np.add.at(more, column[column >= 0], values[column >= 0])
            totals += _centred(more)
        return totals

    def mean(self, values: Any, weight: Any = None) -> Estimate:
        """Return the mean of the answers' ``values`` between 0 and 1, shape (answers,), with its interval."""
        import numpy as np

        from benchmarks.stats.intervals import clustered_wilson

        weights = np.ones(len(self)) if weight is None else weight
        values = np.asarray(values, dtype=np.float64)
        return clustered_wilson(self.sums(weights * values), self.sums(weights), self.own_count)

    def difference(self, lead: Any, weight: Any = None) -> Difference | None:
        """Return the mean of the answers' ``lead`` between -1 and 1, shape (answers,), as a difference of shares."""
        import numpy as np

        from benchmarks.stats.paired_tests import share_difference

        weights = np.ones(len(self)) if weight is None else weight
        lead = np.asarray(lead, dtype=np.float64)
        gains, losses = self.sums(lead.clip(0) * weights), self.sums((-lead).clip(0) * weights)
        return share_difference(gains, losses, self.sums(weights), self.own_count)

    def tally(self, place: Numbers, size: int, weight: NDArray[np.float64] | None = None) -> NDArray[Any]:
        """Return how many answers fall into each of ``size`` cells, as :meth:`sums` does; shape (clusters, size).

        ``place`` is the cell of each answer, -1 for none, and ``weight`` what it counts as, if not as one. Without weights, the
        counts are whole numbers where no answer shows another's page.
        """
        import numpy as np

        def count(column: Numbers) -> NDArray[Any]:
            chosen = (place >= 0) & (column >= 0)
            weights = None if weight is None else weight[chosen]
            cells = np.bincount(column[chosen] * size + place[chosen], weights, self.count * size)
            return cells.reshape(self.count, size)

        totals = count(self.own)
        if self.shown.size:
            more = np.sum([count(column) for column in self.shown.T], axis=0)
            if more.any():
                totals = totals + _centred(more)
        return totals


def number_groups(group: NDArray[Any]) -> tuple[int, Numbers]:
    """Return the number of distinct groups, and each one's number in order of first occurrence; shape (records,).

    ``group`` holds numbers from 0 on.
    """
    import numpy as np

    records = len(group)
    first = np.full(int(group.max(initial=-1)) + 1, records)
    first[group[::-1]] = np.arange(records)[::-1]  # of equal indices, the last assignment holds
    groups = np.flatnonzero(first < records)
    order = np.zeros(len(first), dtype=np.int64)
    order[groups[np.argsort(first[groups])]] = np.arange(len(groups))
    return len(groups), order[group]


class ClusterNames:
    """Clusters under construction: examples that have a page in common are joined as they are added."""

    def __init__(self) -> None:
        self._parent: list[int] = []
        self._numbers: dict[str, int] = {}

    def add(self, example: str, own: Sequence[str]) -> None:
        """Add an example, and the pages that are its own."""
        place = self._number(f"example {example}")
        for page in own:
            self._parent[self._root(self._number(f"page {page}"))] = self._root(place)

    def cluster(self, example: str) -> int:
        """Return the number of an example's cluster."""
        return self._root(self._number(f"example {example}"))

    def page(self, page: str) -> int:
        """Return the number of the cluster that shows a page."""
        return self._root(self._number(f"page {page}"))

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self._parent)
            self._parent.append(len(self._parent))
        return self._numbers[name]

    def _root(self, number: int) -> int:
        while (parent := self._parent[number]) != number:
            self._parent[number] = parent = self._parent[parent]
            number = parent
        return number


def _centred(sums: NDArray[Any]) -> NDArray[np.float64]:
    """Return sums by cluster less their mean, so that they add up to 0 to the last bit; shape (clusters, *cells)."""
    import numpy as np

    unit = 2.0**-20  # sums of so round numbers have no rounding errors
    centred: NDArray[np.float64] = sums - np.floor(sums.sum(0) / len(sums) / unit) * unit
    centred[0] -= centred.sum(0)
    return centred


def _connected(own: NDArray[Any], numbers: Numbers, count: int, shown: NDArray[Any]) -> Numbers:
    """Return the numbers of the other clusters that each answer shows, without those that connect nothing."""
    import numpy as np

    size = int(max(own.max(initial=-1), shown.max(initial=-1))) + 1
    number = np.full(size + 1, -1, np.int64)  # the last stands for -1
    number[own] = numbers
    pairs = np.unique(np.stack([np.repeat(own, shown.shape[1]), shown.ravel()]), axis=1)
    borders = np.bincount(pairs[1][pairs[1] >= 0], minlength=size)  # by how many clusters each page is shown
    further = np.flatnonzero((number[:-1] < 0) & (borders > 1))
    number[further] = count + np.arange(len(further))
    connected = number[shown]
    connected[connected == numbers[:, None]] = -1
    connected.sort(axis=1)
    connected[:, 1:][connected[:, 1:] == connected[:, :-1]] = -1  # two pages of one other cluster count once
    kept: Numbers = connected[:, (connected >= 0).any(0)]
    return kept
