"""Simulated answers in clusters, and the designs that they are drawn by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from benchmarks.stats.clusters import Clusters
from benchmarks.vocabulary import Estimate

Array = NDArray[np.float64]

_SEEDED = 50
"""The number of replicates that have one seed, whose draws are kept."""

SLACK = 1e-9
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Design:
    """Pages, and the number of questions of each."""

    name: str
    sizes: tuple[int, ...]

    @property
    def correlations(self) -> tuple[float, ...]:
        """The correlations within a page that can be simulated."""
        return CORRELATIONS if max(self.sizes) > 1 else CORRELATIONS[:1]


CORRELATIONS = (0.0, 0.2, 0.4, 0.6)
"""Correlations within a page of the normal variables behind the answers."""

DESIGNS = (
    Design("20 pages × 10", (10,) * 20),
    Design("40 pages × 5", (5,) * 40),
    Design("62 charts, 118 questions", (1,) * 28 + (2,) * 20 + (3,) * 8 + (4,) * 4 + (5,) * 2),
    Design("8 pages × 6", (6,) * 8),
    Design("96 independent", (1,) * 96),
)
FEW = 20
"""The number of clusters from which on a design counts for the mean coverage."""

BORROWED = {"own page": 0.0, "half": 0.5, "borrowed page": 1.0}
"""The part of a page's effect on an answer that is that of the page from which its picture is borrowed, by name."""


@dataclass(frozen=True)
class Study:
    """Replicates of a study: answers to questions about pages, correlated within a page.

    Attributes:
        sizes: The number of questions of each page.
        correlation: The correlation within a page of the normal variables behind the answers.
        borrowed: The part of a page's effect that is the borrowed page's; None if no picture is borrowed.
    """

    random: np.random.Generator
    sizes: NDArray[np.int64]
    correlation: float
    replicates: int
    borrowed: float | None = None

    @cached_property
    def own(self) -> NDArray[np.int64]:
        """The page of each answer, shape (answers,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def shown(self) -> NDArray[np.int64]:
        """The other page that each answer shows, shape (replicates, answers)."""
        step = self.random.integers(1, len(self.sizes), size=(self.replicates, len(self.own)))
        return (self.own + step) % len(self.sizes)

    @property
    def clusters(self) -> Iterator[Clusters]:
        """The clusters of the answers in each replicate."""
        if self.borrowed is None:
            of_all = Clusters.of(self.own)
            for _ in range(self.replicates):
                yield of_all
        else:
            for shown in self.shown:
                yield Clusters.of(self.own, shown[:, None])

    def normal(self, correlation: float | None = None) -> Array:
        """Return standard normal variables, shape (replicates, answers), correlated within a page."""
        together = self.correlation if correlation is None else correlation
        effect = self.random.standard_normal((self.replicates, len(self.sizes)))
        by_answer = effect[:, self.own]
        if self.borrowed:
            others = np.take_along_axis(effect, self.shown, axis=1)
            by_answer = math.sqrt(1 - self.borrowed) * by_answer + math.sqrt(self.borrowed) * others
        noise = self.random.standard_normal(by_answer.shape)
        normal: Array = math.sqrt(together) * by_answer + math.sqrt(1 - together) * noise
        return normal

    def below(self, share: float, correlation: float | None = None) -> Array:
        """Return 1 for a ``share`` of the answers, else 0; shape (replicates, answers)."""
        return (self.normal(correlation) < quantile(share)).astype(float)

    def changes(self, gain: float, loss: float) -> tuple[Array, Array]:
        """Return which answers one of two runs gains and loses, shape (replicates, answers); pages favour one of the runs."""
        normal = self.normal()
        return (normal < quantile(gain)).astype(float), (normal > quantile(1 - loss)).astype(float)

    def labels(self, shares: Sequence[float]) -> NDArray[np.int64]:
        """Return labels that occur in these shares, shape (replicates, answers)."""
        ends = [quantile(sum(shares[: place + 1])) for place in range(len(shares) - 1)]
        return np.searchsorted(ends, self.normal())

    def sums(self, *values: Array) -> Array:
        """Return values of shape (replicates, answers) by cluster; shape (replicates, clusters, values)."""
        stacked = np.stack(values, axis=-1)
        if self.borrowed is None:
            starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
            by_page: Array = np.add.reduceat(stacked, starts, axis=1)
            return by_page
        return np.stack([clusters.sums(of) for clusters, of in zip(self.clusters, stacked, strict=True)])

    @property
    def seeds(self) -> Iterator[int]:
        """The seed of each replicate."""
        yield from (number // _SEEDED for number in range(self.replicates))


def quantile(share: float) -> float:
    """Return the quantile of the normal distribution, also at 0 and 1."""
    return _NORMAL.inv_cdf(share) if 0 < share < 1 else math.copysign(math.inf, share - 0.5)


def covers(interval: Estimate, truth: float) -> float:
    """Return 1 if the interval covers the truth, 0 if not, nan if there is none."""
    if interval.low is None or interval.high is None:
        return math.nan
    return float(interval.low - SLACK <= truth <= interval.high + SLACK)
