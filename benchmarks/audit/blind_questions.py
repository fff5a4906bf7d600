"""The distinct questions of one task as arrays, with their options one after another."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.audit.blind_question import BlindOption, BlindQuestion
from benchmarks.stats.clusters import Clusters

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]

_FOLDS = 5
_TIE = 1e-9
"""The difference of scores below which a rule does not choose between two options."""


@dataclass(frozen=True, eq=False)
class Questions:
    """Questions with their clusters and folds; options are numbered over all questions, in their order.

    Attributes:
        items: The questions.
        clusters: Their clusters.
        fold: The fold of each question's cluster, shape (questions,).
    """

    items: Sequence[BlindQuestion]
    clusters: Clusters
    fold: Numbers

    @classmethod
    def of(cls, items: Sequence[BlindQuestion]) -> Questions:
        """Return questions with their clusters dealt to five folds by a fixed seed, at most one fold for each cluster."""
        numbers: dict[Hashable, int] = {}
        own = np.array([numbers.setdefault(item.cluster, len(numbers)) for item in items], np.int64)
        order = np.random.default_rng(0).permutation(len(numbers))
        return cls(items, Clusters.of(own), (order % max(1, min(_FOLDS, len(numbers))))[own])

    @cached_property
    def options(self) -> list[BlindOption]:
        """All options."""
        return list(chain.from_iterable(item.options for item in self.items))

    @cached_property
    def sizes(self) -> Numbers:
        """The number of options of each question."""
        return np.array([len(item.options) for item in self.items], np.int64)

    @cached_property
    def starts(self) -> Numbers:
        """The number of each question's first option."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    @cached_property
    def question(self) -> Numbers:
        """The number of each option's question."""
        return np.repeat(np.arange(len(self.items)), self.sizes)

    @cached_property
    def right(self) -> Array:
        """1 for each right option, else 0."""
        right = np.zeros(int(self.sizes.sum()))
        right[[start + place for start, item in zip(self.starts, self.items, strict=True) for place in item.right]] = 1
        return right

    @cached_property
    def chance(self) -> Array:
        """The share of guesses that are right, for each question."""
        return np.array([item.chance for item in self.items])

    @cached_property
    def names(self) -> list[str]:
        """The name of each option that other questions have, too: its modality, one of few texts, or else its place."""
        if any(option.modality for option in self.options):
            return [option.modality for option in self.options]
        texts = [option.text for option in self.options]
        if len(set(texts)) <= _FEW_TEXTS:
            return texts
        return [f"option {place}" for item in self.items for place in range(1, len(item.options) + 1)]

    def by_question(self, values: Any, reduce: np.ufunc) -> Any:
        """Return the reduction of options' values by question."""
        return reduce.reduceat(values, self.starts)

    def scores(self, values: Array) -> Array:
        """Return the share of the options with the highest of ``values`` that is right, for each question."""
        best = values >= self.by_question(values, np.maximum)[self.question] - _TIE
        hits: Array = self.by_question(best * self.right, np.add) / self.by_question(best.astype(float), np.add)
        return hits


_FEW_TEXTS = 8
"""The greatest number of different texts of all options of a task that count as the same answers to all questions."""
