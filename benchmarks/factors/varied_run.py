"""The answers of a run on a varied build, by cell of its design."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.base import Benchmark
from benchmarks.factors.factor_levels import dose_of
from benchmarks.stats.clusters import number_groups
from benchmarks.stats.intervals import resample
from benchmarks.varied_names import FACTOR_NAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


FOLLOWS_IMAGE = "follows image"

READS_IMAGE = "right, image alone"

_FOLLOWS = {"follows the image": 1.0, "follows the text": 0.0}


class DrawnSums(NamedTuple):
    """Sums of scores and answers, shape (..., 2), their resamples, and the number of clusters behind them."""

    totals: Array
    draws: Array
    clusters: int


@dataclass(frozen=True)
class VariedRun:
    """The answers of a run by cell of its design."""

    benchmark: Benchmark
    answers: Answers
    judge: str
    resamples: int
    seed: int

    @cached_property
    def levels(self) -> dict[str, list[str]]:
        """The levels of each factor that has several, the reference first."""
        levels: dict[str, dict[str, None]] = {}
        for kind in self.answers.kinds:
            for name in FACTOR_NAMES:
                if name in kind.strata:
                    levels.setdefault(name, {})[kind.strata[name]] = None
        return {name: _ordered(list(levels[name])) for name in FACTOR_NAMES if len(levels.get(name, ())) > 1}

    @cached_property
    def cells(self) -> list[tuple[int, ...]]:
        """The cells that have an instance, in order."""
        return sorted({cell for kind in self.answers.kinds if (cell := self._cell(kind)) is not None})

    @cached_property
    def measures(self) -> dict[str, NDArray[np.float64]]:
        """The score and the number of answers of each cluster in each cell, shape (clusters, cells, 2), by measure.

        Measures without an answer are absent.
        """
        number = {cell: place for place, cell in enumerate(self.cells)}
        cell = self.answers.codes(lambda kind: -1 if (at := self._cell(kind)) is None else number[at])
        counts = {}
        for name, measure in measures_of(self.benchmark, self.judge).items():
            scores = [-1.0 if (part := measure(kind)) is None else part for kind in self.answers.kinds]
            score: Array = np.array(scores, dtype=np.float64)[self.answers.kind]
            counted = (score >= 0) & (cell >= 0)
            if not counted.any():
                continue
            rows, place = number_groups(self.answers.clusters.own[counted])
            index, size = place * len(number) + cell[counted], rows * len(number)
            sums = np.bincount(index, weights=score[counted], minlength=size)
            sizes = np.bincount(index, minlength=size).astype(np.float64)
            counts[name] = np.stack([sums, sizes], -1).reshape(rows, len(number), 2)
        return counts

    def draws(self, measure: str) -> DrawnSums:
        """Return the sums of a measure over all clusters, shape (cells, 2), and their resamples."""
        counts = self.measures[measure]
        return DrawnSums(counts.sum(0), resample(counts, self.resamples, self.seed), len(counts))

    def _cell(self, kind: AnswerKind) -> tuple[int, ...] | None:
        try:
            return tuple(levels.index(kind.strata[name]) for name, levels in self.levels.items())
        except (KeyError, ValueError):
            return None


def measures_of(benchmark: Benchmark, judge: str) -> dict[str, Callable[[AnswerKind], float | None]]:
    """Return the functions that score a kind of answer from 0 to 1, or not at all."""

    def follows(kind: AnswerKind) -> float | None:
        if kind.condition not in benchmark.conflicts or kind.outcome(judge) != "labelled":
            return None
        return _FOLLOWS.get(benchmark.behaviours.get(kind.label(judge), ""))

    def right(of: Callable[[AnswerKind], bool]) -> Callable[[AnswerKind], float | None]:
        return lambda kind: benchmark.counted_score(kind, judge) if of(kind) else None

    if not benchmark.conflicts:
        return {"right": right(lambda kind: True)}
    return {
        FOLLOWS_IMAGE: follows,
        "right, conflict": right(lambda kind: kind.condition in benchmark.conflicts),
        READS_IMAGE: right(lambda kind: kind.instance.single_source == "image"),
        "right, text alone": right(lambda kind: kind.instance.single_source == "text"),
    }


def _ordered(levels: list[str]) -> list[str]:
    """Return levels with the first one in its place, and doses in their order; a fraction may have them in another."""
    words: list[str] = []
    numbers: list[str] = []
    for level in levels:
        (words if dose_of(level) is None else numbers).append(level)
    ascending = sorted(numbers, key=float)
    if levels[0] in words:
        return [*words, *ascending]
    if levels[0] == ascending[0]:
        return [*ascending, *words]
    return [*reversed(ascending), *words] if levels[0] == ascending[-1] else levels
