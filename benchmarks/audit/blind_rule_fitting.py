"""Fits of blind rules on some folds of questions, and the scores of their choices on the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.audit import FEWEST_CLUSTERS
from benchmarks.audit.blind_questions import Array, Numbers, Questions
from benchmarks.audit.blind_rules import Rule, words

_PRIOR = 2.0
"""The number of options by which a cell's share is shrunk towards chance."""

_RIDGE = 2.0
_STEPS = 15
_MOST_FEATURES = 256
_FEWEST_QUESTIONS = 3
"""The number of questions that a feature needs in order to be used."""


@dataclass(frozen=True, eq=False)
class Fitted(ABC):
    """A rule whose values of options can be learned without some folds."""

    name: str
    looks_at: str
    reads_source: bool
    questions: Questions

    @abstractmethod
    def values(self, without: Collection[int]) -> Array:
        """Return a value for each option, higher for likelier ones, learned without these folds."""

    def prefers(self) -> str:
        """Return the cell that it has most from, learned on all folds; empty if it has no cells."""
        return ""


@dataclass(frozen=True, eq=False)
class CellRule(Fitted):
    """A rule that chooses the option of the cell that is right most often, beyond chance; ``cells`` are those of each option."""

    cells: Sequence[str]

    @cached_property
    def _cells(self) -> tuple[list[str], Numbers]:
        numbers: dict[str, int] = {}
        cell = [numbers.setdefault(name, len(numbers)) for name in self.cells]
        return list(numbers), np.array(cell, np.int64)

    @cached_property
    def _sums(self) -> tuple[Any, Any]:
        """The gains over chance and the numbers of options, both of shape (folds, cells)."""
        names, cell = self._cells
        questions, folds = self.questions, int(self.questions.fold.max()) + 1
        place = questions.fold[questions.question] * len(names) + cell
        gain = questions.right - questions.chance[questions.question]
        size = folds * len(names)
        gains, counts = np.bincount(place, gain, size), np.bincount(place, minlength=size).astype(float)
        return gains.reshape(folds, -1), counts.reshape(folds, -1)

    def values(self, without: Collection[int]) -> Array:
        gains, counts = self._sums
        others = [fold for fold in range(len(gains)) if fold not in without]
        rates = gains[others].sum(0) / (counts[others].sum(0) + _PRIOR)
        values: Array = rates[self._cells[1]]
        return values

    def prefers(self) -> str:
        return self._cells[0][int(self._sums[0].sum(0).argmax())]


@dataclass(frozen=True, eq=False)
class LogisticRule(Fitted):
    """A conditional logistic model with a ridge penalty (McFadden 1974): the features of an option against those of the others.

    ``features`` are those of each option. It is fitted by Newton's method with the bound of Böhning (1992) on the curvature,
    which is the same in all steps.
    """

    features: Sequence[Collection[str]]

    @cached_property
    def _matrix(self) -> Array:
        """The features less their mean over the question's options, shape (options, features)."""
        questions = self.questions
        options_by_feature: dict[str, list[int]] = {}
        for option, features in enumerate(self.features):
            for feature in set(features):
                options_by_feature.setdefault(feature, []).append(option)
        frequent = Counter({feature: len(options) for feature, options in options_by_feature.items()})
        columns: list[Array] = []
        for feature, count in frequent.most_common(4 * _MOST_FEATURES):
            if count < _FEWEST_QUESTIONS or len(columns) == min(_MOST_FEATURES, len(questions.items)):
                break
            column = np.zeros(len(self.features))
            column[options_by_feature[feature]] = 1
            column -= (questions.by_question(column, np.add) / questions.sizes)[questions.question]
            if column.any():
                columns.append(column)
        return np.stack(columns, axis=1) if columns else np.zeros((len(self.features), 0))

    @property
    def is_usable(self) -> bool:
        """True if any feature tells options of a question apart."""
        return bool(self._matrix.size)

    @cached_property
    def _curvatures(self) -> Array:
        """The bound on the curvature by fold, shape (folds, features, features)."""
        x, fold = self._matrix, self.questions.fold[self.questions.question]
        return np.stack([x[fold == number].T @ x[fold == number] / 2 for number in range(int(fold.max()) + 1)])

    def values(self, without: Collection[int]) -> Array:
        questions = self.questions
        used = ~np.isin(questions.fold, list(without))
        option_used = used[questions.question]
        x, size = self._matrix[option_used], questions.sizes[used]
        starts = np.concatenate([[0], np.cumsum(size)[:-1]])
        question = np.repeat(np.arange(len(size)), size)
        right = questions.right[option_used]
        right = right / np.add.reduceat(right, starts)[question]
        others = [fold for fold in range(len(self._curvatures)) if fold not in without]
        bound = self._curvatures[others].sum(0) + _RIDGE * np.eye(x.shape[1])
        inverse = np.linalg.inv(bound)
        weights = np.zeros(x.shape[1])
        for _ in range(_STEPS):
            logits = x @ weights
            shares = np.exp(logits - np.maximum.reduceat(logits, starts)[question])
            shares /= np.add.reduceat(shares, starts)[question]
            weights += inverse @ (x.T @ (right - shares) - _RIDGE * weights)
        values: Array = self._matrix @ weights
        return values


def fitted_rules(rules: Iterable[Rule], questions: Questions) -> list[Fitted]:
    """Return rules over cells and, if there are enough clusters to learn from, the logistic models of words and of all cells."""
    cells = [CellRule(rule.name, rule.looks_at, rule.reads_source, questions, rule.cells) for rule in rules]
    if questions.clusters.count < FEWEST_CLUSTERS:
        return [*cells]
    return [*cells, *(rule for rule in _logistic_rules(cells, questions) if rule.is_usable)]


def _logistic_rules(cells: Sequence[CellRule], questions: Questions) -> Iterable[LogisticRule]:
    items, names, question = questions.items, questions.names, questions.question

    def crossed(texts: Sequence[str]) -> list[list[str]]:
        bags = [list(dict.fromkeys(words(text))) for text in texts]
        frequent = Counter(word for bag in bags for word in bag)
        known = {word for word, _ in frequent.most_common(_MOST_FEATURES)}
        return [
            [f"{name} {word}" for word in bags[place] if word in known]
            for name, place in zip(names, question, strict=True)
        ]

    yield LogisticRule(
        "model of the question",
        "the words of the question alone",
        False,
        questions,
        crossed([item.question for item in items]),
    )
    yield LogisticRule(
        "model of the options",
        "the words of the options alone",
        any(item.texts_are_sources for item in items),
        questions,
        [words(option.text) for option in questions.options],
    )
    for source in dict.fromkeys(name for item in items for name in item.sources):
        texts = [item.sources.get(source, "") for item in items]
        yield LogisticRule(f"model of {source}", f"the words of the {source} alone", True, questions, crossed(texts))
    columns = [[f"{rule.name}: {cell}" for cell in rule.cells] for rule in cells if not rule.reads_source]
    if len(columns) > 1:
        features = [list(row) for row in zip(*columns, strict=True)]
        yield LogisticRule(
            "model of all", "all properties that rules without a source look at", False, questions, features
        )
